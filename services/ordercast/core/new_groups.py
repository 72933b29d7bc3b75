"""Groups that others may not have heard of yet, for submissions.

A gateway may know of a group before the group's replicas do: g1 creates it, and its first message is at n2 before
the view is. n2 cannot take it, and says nothing. So what is for a new group is sent again sooner, and nobody is
taken for down because of it until the usual time is over.
"""

from ordercast.core.view import View


class NewGroups:
    def __init__(self) -> None:
        #: By group: until when it is likely that somebody has not heard of it.
        self._until: dict[str, float] = {}
        self._has_view = False

    def __contains__(self, group: str) -> bool:
        return group in self._until

    def on_view(self, before: View, view: View, now: float, usual_s: float) -> None:
        """Of a gateway's first view it is not known what is new in it."""
        self.expire(now)
        is_first, self._has_view = not self._has_view, True
        if not is_first:
            created = [name for name in view.groups if name not in before.groups]
            self._until.update(dict.fromkeys(created, now + usual_s))

    def expire(self, now: float) -> None:
        if self._until:
            self._until = {name: until for name, until in self._until.items() if until > now}
