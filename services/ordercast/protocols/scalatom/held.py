"""An envelope that this process holds, or has heard of, until every replica here has forgotten it."""

from dataclasses import dataclass, field

from ordercast.v1.common_pb2 import Envelope


@dataclass(slots=True)
class Held:
    id: bytes
    #: The destination groups that are still there; empty until the envelope itself is here.
    names: tuple[str, ...] = ()
    #: None before it came, and again after it was delivered in every group here.
    envelope: Envelope | None = None
    #: Our own stamp.
    rec_ts: int | None = None
    #: Stamps by process, our own included once it is made.
    stamps: dict[str, int] = field(default_factory=dict)
    #: Processes that are known to hold it durably (E4).
    owners: dict[str, None] = field(default_factory=dict)
    sn: int | None = None
    #: Groups here in which it is not delivered yet.
    undelivered: dict[str, None] = field(default_factory=dict)
    proposed: bool = False
    #: When it was first heard of.
    since: float = 0.0
    #: When to look after it, and how long to wait after that.
    deadline: float = 0.0
    delay: float = 0.0
    tries: int = 0

    @property
    def coordinator(self) -> str:
        """Nobody, if the envelope is not here."""
        return "" if self.envelope is None else self.envelope.header.coordinator.process

    def is_whole(self) -> bool:
        """None of its groups is gone. If one is, who has not taken it yet cannot: logs will have it."""
        return self.envelope is not None and len(self.names) == len(self.envelope.header.destinations)

    def is_held_by(self, process: str) -> bool:
        return process in self.owners
