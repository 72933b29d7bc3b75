"""What the machine of a protocol has in common with others: the effects of the current step, and its logs."""

from typing import Any, Generic, TypeVar

from ordercast.core.cells import cell_of
from ordercast.core.machine import Effect, Event, GroupsRemoved, Persist, Send
from ordercast.core.view import Group, OtherConfiguration, UnknownGroup, View
from ordercast.protocols.celllog import who
from ordercast.protocols.celllog.group_log import GroupLog
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.celllog.settings import LogSettings

R = TypeVar("R", bound=GroupLog)


class LogMachine(Generic[R]):
    """Handlers append to `out` what is performed in order, to `changes` and `then` what goes to the disk, and note
    in `touched` the groups in which something may move now.
    """

    settings: LogSettings
    #: Our view says who may ask for a log, and who may send it. It may be late: where views change while a log is
    #: copied, and a newcomer is waited for, any process is answered and believed (see README.md).
    asks_view = True

    def __init__(self, process: str, settings: LogSettings, *, observe: bool) -> None:
        self.process = process
        self.settings = settings
        self.observe = observe
        self.incarnation = 0
        self.view: View | None = None
        self.replicas: dict[str, R] = {}
        #: The incarnation each connected process is in.
        self.current: dict[str, int] = {}
        # Of the current step:
        self.now = 0.0
        self.wall = 0.0
        self.out: list[Effect] = []
        self.changes: list[Record] = []
        self.then: list[Send] = []
        self.touched: dict[str, None] = {}

    def begin_step(self, event: Event) -> None:
        self.now, self.wall = event.now, event.wall
        self.out, self.changes, self.then, self.touched = [], [], [], {}

    def end_step(self) -> list[Effect]:
        if self.changes or self.then:
            self.out.append(Persist(self.changes, barrier=False, then=self.then))
        return self.out

    # ------------------------------------------------------------------------------------ what a protocol gives

    def wake_for_copy(self) -> None:
        """A copy is under way, and a tick has to look after it. Where ticks never end there is nothing to do."""

    def patience_s(self) -> float:
        """How long silence is normal."""
        return self.settings.silence_s

    def group_of(self, message: Any) -> Group:
        """The group that a message about a log is meant for. Logs are the same in every configuration and view."""
        group = self.view.groups.get(message.group) if self.view is not None else None
        if group is None:
            raise UnknownGroup(message.group)
        return group

    # ------------------------------------------------------------------------------------- groups that are gone

    def forget_groups(self, event: GroupsRemoved) -> None:
        for address in event.groups:
            replica = self.replicas.get(cell_of(address))
            if replica is not None:
                self.changes += replica.forget_group(address)

    def kept_groups(self) -> list[str]:
        """See core.machine.KeepsGroups."""
        return [address for replica in self.replicas.values() for address in replica.ends]

    # ---------------------------------------------------------------------------------------- who is spoken to

    def log_asked_for(self, message: Any, source: str) -> R:
        """Our replica of the group whose log, or state, somebody wants. Refuses who may not ask."""
        if self.asks_view:
            who.check_asks(self.group_of(message), source)
        return self._here(message.group)

    def log_given_to(self, message: Any, source: str) -> R:
        """Our replica of the group whose log, or state, somebody sends. Refuses who may not tell."""
        if self.asks_view:
            who.check_gives(self.group_of(message), source)
        return self._here(message.group)

    def _here(self, name: str) -> R:
        replica = self.replicas.get(name)
        if replica is None:
            raise OtherConfiguration(name, f"no replica of {name!r} here")
        return replica
