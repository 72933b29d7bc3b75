"""The envelopes that are held here, and for whom: one copy, whatever number of groups of this process need it.

A group needs an envelope as its *source*, from receipt until all who need it have it on disk, and as a
*destination*, from receipt until it is in the group's log. What is needed and not here is pulled.
"""

from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.optimistic import records
from ordercast.v1.optimistic_pb2 import Multicast


def as_source(group: str) -> str:
    return "s" + group


def as_destination(group: str) -> str:
    return "d" + group


class Payloads:
    def __init__(self) -> None:
        self.held: dict[bytes, Multicast] = {}
        self.on_disk: dict[bytes, None] = {}
        #: By id: who needs it.
        self.needs: dict[bytes, dict[str, None]] = {}
        #: Needed, with its source, and not here.
        self.missing: dict[bytes, str] = {}
        self.changes: list[Record] = []

    def need(self, id_: bytes, who: str, source: str) -> None:
        self.needs.setdefault(id_, {})[who] = None
        if id_ not in self.held:
            self.missing[id_] = source

    def came(self, cast: Multicast) -> bool:
        """Keep it, if somebody needs it. Whether it is news."""
        id_ = cast.envelope.header.id
        if id_ not in self.needs or id_ in self.held:
            return False
        self.held[id_] = cast
        self.missing.pop(id_, None)
        return True

    def keep(self, id_: bytes) -> bool:
        """On the disk, with the next commit. Whether it is here at all."""
        cast = self.held.get(id_)
        if cast is None:
            return False
        if id_ not in self.on_disk:
            self.on_disk[id_] = None
            self.changes.append((records.payload(id_), cast.SerializeToString()))
        return True

    def done(self, id_: bytes, who: str) -> None:
        needs = self.needs.get(id_)
        if needs is None or who not in needs:
            return
        del needs[who]
        if needs:
            return
        del self.needs[id_]
        self.missing.pop(id_, None)
        self.held.pop(id_, None)
        if id_ in self.on_disk:
            del self.on_disk[id_]
            self.changes.append((records.payload(id_), None))

    def load(self, value: bytes) -> None:
        cast = Multicast.FromString(value)
        id_ = cast.envelope.header.id
        self.held[id_], self.on_disk[id_] = cast, None

    def drop_unneeded(self) -> None:
        """After a start, once everybody has said what it needs."""
        for id_ in [id_ for id_ in self.held if id_ not in self.needs]:
            self.needs[id_] = {"": None}
            self.done(id_, "")

    def take_changes(self) -> list[Record]:
        changes, self.changes = self.changes, []
        return changes
