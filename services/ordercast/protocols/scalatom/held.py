"""An envelope that this process holds, or has heard of, until every replica here has forgotten it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ordercast.v1.common_pb2 import Envelope


@dataclass(slots=True)
class Held:
    id: bytes
    #: The destination groups that are still there; empty until the envelope itself is here.
    names: tuple[str, ...] = ()
    #: None before it came, and again after it was delivered in every group here.
    envelope: Envelope | None = None
    #: Our own stamps, by group. All are the same, unless some group's configuration changed meanwhile.
    own: dict[str, int] = field(default_factory=dict)
    #: Stamps by group and process, our own included: each of the group's configuration in our view.
    stamps: dict[str, dict[str, int]] = field(default_factory=dict)
    #: Processes that are known to hold it durably (E4).
    owners: dict[str, None] = field(default_factory=dict)
    sn: int | None = None
    #: Groups here in which it is not delivered yet.
    undelivered: dict[str, None] = field(default_factory=dict)
    proposed: bool = False
    #: But one of its groups has changed since, so that the value counts no more.
    again: bool = False
    #: When it was first heard of.
    since: float = 0.0
    #: When to look after it, and how long to wait after that.
    deadline: float = 0.0
    delay: float = 0.0
    tries: int = 0
    #: What its number waited for, for whoever looks on; and whether that was in vain.
    blocked_on: str = ""
    waited_in_vain: bool = False

    @property
    def coordinator(self) -> str:
        """Nobody, if the envelope is not here."""
        return "" if self.envelope is None else self.envelope.header.coordinator.process

    def is_whole(self) -> bool:
        """None of its groups is gone. If one is, who has not taken it yet cannot: logs will have it."""
        return self.envelope is not None and len(self.names) == len(self.envelope.header.destinations)

    def is_held_by(self, process: str) -> bool:
        return process in self.owners

    def note_stamp(self, group: str, process: str, rec_ts: int) -> None:
        """A process stamps once in a configuration."""
        stamps = self.stamps.get(group)
        if stamps is None:
            self.stamps[group] = {process: rec_ts}
        else:
            stamps.setdefault(process, rec_ts)

    def stamp(self, group: str, process: str, rec_ts: int) -> None:
        """Our own."""
        self.own[group] = rec_ts
        self.note_stamp(group, process, rec_ts)

    def stamped(self, group: str) -> Iterable[str]:
        """Who has, in this group."""
        return self.stamps.get(group, ())

    def highest(self) -> int:
        return max(rec_ts for stamps in self.stamps.values() for rec_ts in stamps.values())
