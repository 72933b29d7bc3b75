"""What is damaged on this disk beyond mending from a log's other copies, and which groups that concerns.

A record of a machine is nobody else's: if it is damaged or gone, the process has forgotten a promise. It must not
take part in the groups that the promise was made in, until a new configuration replaces it there; other groups go
on. So:

* a damaged record that is one group's (its protocol says which are, see RecordScope) damages that group;
* any other damaged record of a domain, such as a vote or a clock, damages every group of the domain;
* a damaged record under a key that is no domain's may have been anybody's: it damages every domain;
* a log that ends before the position that the machine had reached, or whose beginning is damaged, damages its
  group;
* a commit that was acknowledged and is gone (commit_mark.py) damages everything.

Damage is remembered until the group is replaced, over restarts and also if by then nothing looks wrong any more.
It goes to the disk with the next commit. Damaged records stay where they are until then, and are only deleted if
they are still damaged: the machine may have written them anew.

"Every group" is what the process holds at the time of the damage, and not what it gets later. The storage does not
know which those are; whoever does names them, and from then on they are counted one by one.
"""

import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import structlog

from ordercast.core.errors import InvariantBroken
from ordercast.core.protocol import RecordScope
from ordercast.runtime.storage import damage_advice
from ordercast.runtime.storage.layout import CorruptRecord, LostWritesError

log = structlog.get_logger("storage")

#: Damaged records that are remembered one by one as accounted for; those beyond damage every group again.
ACCOUNTED_MAX = 4096
#: So many are logged one by one.
LOGGED_MAX = 20
#: Stands for all domains: a log does not say which one its group is of.
ANY = ""


@dataclass(slots=True, frozen=True)
class Damage:
    """Of one domain."""

    #: Ids. There may be some of other domains among them.
    groups: frozenset[str] = frozenset()
    #: Every group of the domain that this process is a member of.
    everything: bool = False

    def __bool__(self) -> bool:
        return self.everything or bool(self.groups)


class DamagedRecord(NamedTuple):
    domain: str
    role: str
    key: bytes
    #: The key in the database, and the checksum of what lies there now.
    stored_key: bytes
    checksum: int
    error: CorruptRecord


class Unsaved(NamedTuple):
    """What the next commit takes along."""

    state: bytes
    #: Keys of records to be deleted, if they are still damaged.
    delete: tuple[bytes, ...]


@dataclass(slots=True)
class State:
    """What is remembered."""

    #: What was lost as a whole, in words; empty if nothing was. And the domains whose groups were named since.
    lost: str = ""
    named: set[str] = field(default_factory=set)
    #: By domain: groups that are damaged and not yet replaced.
    groups: dict[str, set[str]] = field(default_factory=dict)
    #: By domain: damaged records of no single group whose groups were named, with the checksum of what lies there.
    accounted: dict[str, dict[bytes, int]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        content = {
            "lost": self.lost,
            "named": sorted(self.named),
            "groups": {domain: sorted(groups) for domain, groups in sorted(self.groups.items()) if groups},
            "accounted": {
                domain: {key.hex(): checksum for key, checksum in sorted(records.items())}
                for domain, records in sorted(self.accounted.items())
            },
        }
        return json.dumps(content).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "State":
        content: dict[str, Any] = json.loads(data)
        return cls(
            content["lost"],
            set(content["named"]),
            {domain: set(groups) for domain, groups in content["groups"].items()},
            {
                domain: {bytes.fromhex(key): checksum for key, checksum in records.items()}
                for domain, records in content["accounted"].items()
            },
        )


@dataclass(slots=True)
class Scan:
    """What a look at the whole disk found."""

    damaged: list[DamagedRecord] = field(default_factory=list)
    #: Domains with records that can be read.
    domains: dict[str, None] = field(default_factory=dict)
    #: (domain, group, why) of logs that do not fit to the records.
    logs: list[tuple[str, str, str]] = field(default_factory=list)
    #: Entries at the end of a log that can be had from another replica.
    ends: list[CorruptRecord] = field(default_factory=list)


class DamageBook:
    """For the event loop's thread, but for `unsaved` and `saved`, which are the writer's as well."""

    def __init__(self, state: State, scan: Callable[[Mapping[str, RecordScope]], Scan]) -> None:
        self.state = state
        self._look = scan
        self._scan: Scan | None = None
        self._scopes: dict[str, RecordScope] = {}
        self._delete: dict[bytes, None] = {}
        self.unsaved = self.saved = Unsaved(state.to_bytes(), ())

    @property
    def is_unsaved(self) -> bool:
        return self.unsaved is not self.saved

    def _change(self) -> None:
        self.unsaved = Unsaved(self.state.to_bytes(), tuple(self._delete))

    # ------------------------------------------------------------------------------------------------ finding

    def add_scope(self, role: str, scope: RecordScope) -> None:
        """Before anybody asks: which records of this role are one group's. Of other roles, none is."""
        if self._scan is not None:
            raise InvariantBroken(f"the records of {role!r} were judged before")
        self._scopes[role] = scope

    def scan(self) -> Scan:
        """Once, when somebody asks for the first time."""
        if self._scan is None:
            self._scan = found = self._look(self._scopes)
            for record in found.damaged[:LOGGED_MAX]:
                log.critical(
                    "damaged record", record=str(record.error), advice=damage_advice.of_record(record.error)
                )
            if len(found.damaged) > LOGGED_MAX:
                log.critical("more damaged records", count=len(found.damaged) - LOGGED_MAX)
            if self.state.lost:
                log.critical("writes are lost", why=self.state.lost, advice=damage_advice.RECORD)
            for domain, group, why in found.logs:
                self._damage_group(domain, group, why)
        return self._scan

    def count(self) -> int:
        """Damaged records whose groups were not replaced yet."""
        return len(self.scan().damaged)

    def of(self, domain: str) -> Damage:
        own, others = self._records(domain)
        for record, group in own:
            self._damage_group(domain, group, str(record.error))
        is_everything = self._is_lost(domain) or bool(self._unaccounted(domain, others))
        return Damage(self._groups(domain), is_everything)

    def all_groups(self) -> frozenset[str]:
        """As far as it is known already."""
        return frozenset(group for groups in self.state.groups.values() for group in groups)

    def check_nothing_lost(self, domain: str) -> None:
        """Raises if a record of the domain may be missing, wherever it was."""
        strays = [record for record in self.scan().damaged if self._is_stray(record)]
        if self._is_lost(domain):
            raise LostWritesError(f"this disk has lost writes: {self.state.lost}")
        if strays:
            raise strays[0].error.with_traceback(None)

    def _is_lost(self, domain: str) -> bool:
        return bool(self.state.lost) and domain not in self.state.named

    def _is_stray(self, record: DamagedRecord) -> bool:
        """Its key is no domain's, as far as can be told: it may have been anybody's."""
        return record.domain not in self.scan().domains

    def _groups(self, domain: str) -> frozenset[str]:
        return frozenset(self.state.groups.get(domain, set()) | self.state.groups.get(ANY, set()))

    def _records(self, domain: str) -> tuple[list[tuple[DamagedRecord, str]], list[DamagedRecord]]:
        """The damaged ones of the domain: those of single groups, with the group; and the others."""
        own: list[tuple[DamagedRecord, str]] = []
        others: list[DamagedRecord] = []
        for record in self.scan().damaged:
            if record.domain != domain and not self._is_stray(record):
                continue
            scope = self._scopes.get(record.role) if record.domain == domain else None
            group = scope.group_of(record.key) if scope is not None else None
            if group is None:
                others.append(record)
            else:
                own.append((record, group))
        return own, others

    def _unaccounted(self, domain: str, others: Iterable[DamagedRecord]) -> list[DamagedRecord]:
        """Of the damaged records that are no single group's, those whose groups were not named yet."""
        accounted = self.state.accounted.get(domain, {})
        return [record for record in others if accounted.get(record.stored_key) != record.checksum]

    def _damage_group(self, domain: str, group: str, why: str) -> None:
        groups = self.state.groups.setdefault(domain, set())
        if group not in groups:
            log.critical("damaged group: it has to be replaced", domain=domain, group=group, why=why)
            groups.add(group)
            self._change()

    # --------------------------------------------------------------------------------------- what becomes of it

    def among(self, domain: str, members: Collection[str]) -> frozenset[str]:
        """See Storage.damaged_among."""
        if self.of(domain).everything:
            self._name(domain, members)
        return self._groups(domain) & frozenset(members)

    def _name(self, domain: str, members: Iterable[str]) -> None:
        """Everything is damaged, and these are the groups that there are."""
        new = self._unaccounted(domain, self._records(domain)[1])
        why = self.state.lost if self._is_lost(domain) else str(new[0].error)
        for group in sorted(members):
            self._damage_group(domain, group, why)
        if self.state.lost:
            self.state.named.add(domain)
        accounted = self.state.accounted.setdefault(domain, {})
        for record in new[: max(0, ACCOUNTED_MAX - len(accounted))]:
            accounted[record.stored_key] = record.checksum
        self._change()

    def forget(self, domain: str, group: str) -> None:
        """The group was replaced. With the last one of a domain, what damaged all of them is forgotten too."""
        own, others = self._records(domain)
        for groups in (self.state.groups.get(ANY), self.state.groups.get(domain)):
            if groups is not None:
                groups.discard(group)
        self._forget(record for record, of in own if of == group)
        if not self.state.groups.get(domain):
            accounted = self.state.accounted.get(domain, {})
            self._forget([r for r in others if r.domain == domain and r.stored_key in accounted])
        self._change()

    def _forget(self, records: Iterable[DamagedRecord]) -> None:
        for record in records:
            self._delete[record.stored_key] = None
            self.state.accounted.get(record.domain, {}).pop(record.stored_key, None)
            self.scan().damaged.remove(record)


def damaged_record(stored_key: bytes, value: bytes, error: CorruptRecord) -> DamagedRecord:
    """The parts of its key, as far as there are any."""
    domain, role, key = (*stored_key.split(b"\0", 2), b"", b"")[:3]
    return DamagedRecord(
        domain.decode(errors="replace"),
        role.decode(errors="replace"),
        key,
        stored_key,
        zlib.crc32(value),
        error.with_traceback(None),
    )
