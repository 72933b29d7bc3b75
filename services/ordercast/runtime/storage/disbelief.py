"""Groups of which nothing on this disk may be believed, until a configuration begins that knows about it.

What a damaged disk has forgotten, a replica or an acceptor here may have promised. So machines are told, with
every view, that they have lost what they had (GroupView.lost), from the first view on and before membership has
even heard of it. In a later configuration they are newcomers. When they have started there, and membership has
noted that, the damage is over.
"""

from ordercast.core.members import kind_of
from ordercast.runtime.storage.store import Storage
from ordercast.v1.membership_pb2 import Configuration, DomainView, Group, GroupView


class Disbelief:
    def __init__(self, process: str, storage: Storage) -> None:
        self.process = process
        self.storage = storage
        #: By domain and group: the latest configuration in which we may have promised what is gone.
        self._until: dict[tuple[str, str], int] = {}

    def overlay(self, view: DomainView, groups: dict[str, Group], incarnation: int) -> DomainView:
        """The view, as machines here have to see it, in this life."""
        mine = [group for group in view.groups if self._is_mine(group, groups[group.group])]
        damaged = self.storage.damaged_among(view.domain, [group.group for group in mine])
        for group in mine:
            if group.group not in damaged:
                continue
            # What is damaged was found when this life began: a configuration may know nothing of it.
            record = groups[group.group]
            begins_without = kind_of(record).begins_without(record, incarnation)
            until = self._until.setdefault(
                (view.domain, group.group), group.configuration - 1 if begins_without else group.configuration
            )
            if group.configuration <= until:
                self._lose(group)
            if group.HasField("previous") and group.previous.number <= until:
                self._lose(group.previous)
        return view

    def _is_mine(self, group: GroupView, record: Group) -> bool:
        if self.process in group.replicas or self.process in group.acceptors:
            return True
        before = group.previous
        if self.process in before.replicas or self.process in before.acceptors:
            return True
        return kind_of(record).keeps_log_of(record, self.process)

    def _lose(self, configuration: GroupView | Configuration) -> None:
        if self.process not in configuration.lost:
            configuration.lost.append(self.process)

    def to_report(self, groups: dict[str, Group]) -> list[str]:
        """Those that membership has not noted yet."""
        found = []
        for (_, id_), until in self._until.items():
            group = groups.get(id_)
            if group is not None and group.configuration <= until and self.process not in group.lost:
                found.append(id_)
        return found

    def forget_what_is_over(self, groups: dict[str, Group]) -> None:
        """Started in a later configuration, as membership has noted; or we have no part in the group any more."""
        for (domain, id_), until in list(self._until.items()):
            group = groups.get(id_)
            if group is None:
                is_over = True
            elif self.process in (*group.replicas, *group.acceptors):
                is_over = group.configuration > until and self.process not in group.starting
            else:
                counts = kind_of(group).keeps_log_of(group, self.process)
                is_over = not counts and not group.HasField("previous")
            if is_over:
                del self._until[domain, id_]
                self.storage.forget_damage(domain, id_)
