"""A fixed sequencer per domain with a stand-by: the machine of every node of the domain.

**The rule.** The sequencer gives every envelope of the domain the next number, and in each of its groups the next
position; it writes that to its disk and sends it to the stand-by, which does the same. What is on both disks is
true for good. Only then do replicas hear of it, and they deliver by position.

**Why it is safe.** A number is told to anybody only when the stand-by has it. So the stand-by's disk never lacks
anything that was delivered, and what the sequencer has beyond that is nobody's order yet. A sequencer that starts
again numbers nothing before it has heard how far the stand-by is: if that is further than itself, its disk is not
the one that it had, and it stays silent for good.

**Who is the sequencer** follows from the view alone (`Settings.chain`). If membership says that the sequencer lost
its disk, the stand-by takes over, with everything that was ever delivered. It takes nothing from the one before
any more, so nothing else becomes true. If the stand-by lost its disk, the sequencer goes on alone.

**What it does not do.** If one of the two is down, and its disk is not lost, the domain waits. A replica that lost
its disk stays empty, and replicas are not moved: nobody copies logs. What a replica lacks is kept until it has it,
so after ENTRIES_MAX envelopes the domain waits for a replica that is down.
"""

from collections.abc import Callable, Iterable
from typing import Any

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import U64_MAX, counter_of, incarnation_of, pack_u64, unpack_u64
from ordercast.core.machine import (
    ChannelReset,
    Effect,
    Ended,
    Event,
    LogRead,
    Observe,
    Persist,
    ReadLog,
    Receive,
    Retired,
    Send,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.core.view import View
from ordercast.protocols.celllog.idempotence import Record
from ordercast.v1.common_pb2 import Header
from ordercast.v1.membership_pb2 import DomainView
from ordercast.v1.sequencer_pb2 import Disseminate
from ordercast_tandem.protocol import Settings, group_in
from ordercast_tandem.replica import Replica, report_of
from ordercast_tandem.tandem_pb2 import Have, Keep, Kept, Numbered, Ordered, Place, Unfinished

TIMER = "tandem"
TICK_S = 0.2
#: Envelopes that are numbered, and not known to be finished and delivered everywhere.
ENTRIES_MAX = 10_000
#: So many are sent again at once to a process that has fallen behind.
AGAIN_MAX = 64

#: Records: n<number> Numbered; c<group> the next position; f the next number. replica.py has the others.
NUMBERED, COUNTER, NEXT = b"n", b"c", b"f"


class Tandem:
    def __init__(self, process: str, settings: Settings, *, observe: bool = False) -> None:
        self.process = process
        self.settings = settings
        self.observe = observe
        self.view = View(DomainView())
        self.replicas: dict[str, Replica] = {}
        self.saved: list[tuple[bytes, bytes]] = []
        # What the sequencer and the stand-by have in common.
        self.log: dict[int, Numbered] = {}
        self.numbers: dict[bytes, int] = {}
        self.counters: dict[str, int] = {}
        self.next = 0
        # What only the sequencer knows: how far the stand-by is, and every replica of each group.
        self.kept = 0
        self.is_synced = False
        self.have: dict[tuple[str, str], int] = {}
        self.finished: dict[int, None] = {}
        self.ended: dict[str, int] = {}
        self.retired = 0
        self.out: list[Effect] = []
        self._on_message: dict[type, Callable[[Receive, Any], None]] = {
            Disseminate: self._on_envelope,
            Unfinished: self._on_unfinished,
            Keep: self._on_keep,
            Kept: self._on_kept,
            Ordered: self._on_ordered,
            Have: self._on_have,
        }
        self.handles = tuple(self._on_message)

    def step(self, event: Event) -> list[Effect]:
        self.out = []
        match event:
            case Receive():
                self._on_message[type(event.message)](event, event.message)
            case LogRead():
                for entry in event.entries:
                    self.out.append(Send((entry.envelope.header.gateway,), report_of(event.group, entry)))
            case TimerFired():
                self._repeat()
                self.out.append(SetTimer(TIMER, TICK_S))
            case ChannelReset():
                self._greet(event.peer)
            case ViewChanged():
                self._on_view(event.index)
            case Ended():
                self.ended[event.process] = max(event.incarnation, self.ended.get(event.process, 0))
                self._forget()
            case Retired():
                self.retired = max(event.below, self.retired)
                self._forget()
            case Start():
                self.saved = list(event.records)
                self.out.append(SetTimer(TIMER, TICK_S))
        return self.out

    # ------------------------------------------------------------------------------------- who is who, and views

    @property
    def is_sequencer(self) -> bool:
        return self.settings.chain(self.view)[:1] == (self.process,)

    @property
    def standby(self) -> str | None:
        return next(iter(self.settings.chain(self.view)[1:]), None)

    def _on_view(self, view: View) -> None:
        before, self.view = self.settings.chain(self.view), view
        here = [name for name, group in sorted(view.groups.items()) if self.process in group.working]
        gone = [replica for name, replica in self.replicas.items() if name not in here]
        self.replicas = {name: self.replicas.get(name) or Replica(name) for name in here}
        records = [record for replica in gone for record in replica.cleared()]
        records += self._load()
        for name in [name for name in self.counters if name not in view.groups]:
            del self.counters[name]
            records.append((COUNTER + name.encode(), None))
        self.have = {key: position for key, position in self.have.items() if key[0] in view.groups}
        self.out += [Persist(records, barrier=False)] if records else []
        if before != self.settings.chain(view):
            if self.is_sequencer and self.standby is None:
                self.is_synced, self.kept = True, self.next
            self._greet(next(iter(self.settings.chain(view)), ""))
            self._send_from(min(self.log, default=self.next))
        self._forget()

    def _load(self) -> list[Record]:
        """What was saved, once it is known which groups are here. Returns the removal of what is of no group."""
        of_groups: dict[str, list[tuple[bytes, bytes]]] = {}
        for key, value in self.saved:
            if key[:1] == NUMBERED:
                numbered = Numbered.FromString(value)
                self.log[numbered.number] = numbered
            elif key[:1] == COUNTER:
                self.counters[key[1:].decode()] = unpack_u64(value)
            elif key == NEXT:
                self.next = unpack_u64(value)
            else:
                of_groups.setdefault(group_in(key), []).append((key, value))
        self.saved = []
        self.log = dict(sorted(self.log.items()))
        self.numbers = {numbered.envelope.header.id: number for number, numbered in self.log.items()}
        for name, rows in of_groups.items():
            if name in self.replicas:
                self.replicas[name].load(rows)
        return [(key, None) for name, rows in of_groups.items() if name not in self.replicas for key, _ in rows]

    def _greet(self, peer: str) -> None:
        """What was sent to this process may be lost, or was never sent: say where we are."""
        chain = self.settings.chain(self.view)
        if peer == self.standby and self.is_sequencer:
            self._keep_from(self.kept)
        if chain[:1] == (peer,):
            self.out += [Send((peer,), Have(group=name, position=r.position)) for name, r in self.replicas.items()]
            if self.process == self.standby:
                self.out.append(Send((peer,), Kept(next=self.next)))

    # ------------------------------------------------------------------------------------------------ sequencer

    def _on_envelope(self, event: Receive, message: Disseminate) -> None:
        header = message.envelope.header
        if not self.is_sequencer or not self.is_synced or self._is_over(header):
            return  # its gateway repeats it, if there is one
        number = self.numbers.get(header.id)
        if number is not None:
            if number < self.kept and message.again:
                self._send_on(number, self._replicas_of(number), again=True)
        elif len(self.log) < ENTRIES_MAX:
            self._number(message, self.view.checked_names(header.destinations))

    def _number(self, message: Disseminate, groups: tuple[str, ...]) -> None:
        places = [Place(group=group, position=self.counters.get(group, 0)) for group in groups]
        self._store(Numbered(number=self.next, envelope=message.envelope, places=places))
        if self.observe:
            self.out.append(Observe("numbered", message.envelope.header.id))
        self._keep_from(self.next - 1)

    def _store(self, numbered: Numbered) -> None:
        """On the disk before anything that is sent from now on."""
        self.log[numbered.number] = numbered
        self.numbers[numbered.envelope.header.id] = numbered.number
        self.next = numbered.number + 1
        records: list[Record] = [
            (NUMBERED + pack_u64(numbered.number), numbered.SerializeToString()),
            (NEXT, pack_u64(self.next)),
        ]
        for place in numbered.places:
            self.counters[place.group] = place.position + 1
            records.append((COUNTER + place.group.encode(), pack_u64(place.position + 1)))
        self.out.append(Persist(records))

    def _keep_from(self, number: int) -> None:
        """To the stand-by, if there is one. Without one, our own disk is enough."""
        if self.standby is None:
            before, self.kept = self.kept, self.next
            self._send_from(before)
            return
        floor = min(self.log, default=self.next)
        missing = [self.log[n] for n in range(max(number, floor), self.next)[:AGAIN_MAX]]
        self.out += [Send((self.standby,), Keep(numbered=numbered, floor=floor)) for numbered in missing]

    def _on_kept(self, event: Receive, message: Kept) -> None:
        if event.source != self.standby or not self.is_sequencer or message.next > self.next:
            return
        self.is_synced = True
        before, self.kept = self.kept, max(self.kept, message.next)
        self._send_from(before)

    def _send_from(self, number: int) -> None:
        """To all replicas, what is on both disks."""
        if self.is_sequencer:
            for one in range(max(number, min(self.log, default=self.next)), self.kept):
                self._send_on(one, self._replicas_of(one))

    def _replicas_of(self, number: int) -> tuple[str, ...]:
        return self.view.replicas_of(tuple(place.group for place in self.log[number].places))

    def _send_on(self, number: int, to: Iterable[str], *, again: bool = False) -> None:
        floor = min(self.log)
        self.out.append(Send(tuple(to), Ordered(numbered=self.log[number], floor=floor, again=again)))

    def _on_have(self, event: Receive, message: Have) -> None:
        key = (message.group, event.source)
        self.have[key] = max(message.position, self.have.get(key, 0))
        self._forget()

    def _on_unfinished(self, event: Receive, message: Unfinished) -> None:
        """All other envelopes of this gateway are finished: it has sent them before it said this."""
        for id_, number in self.numbers.items():
            if incarnation_of(id_) == event.incarnation and counter_of(id_) not in message.counters:
                self.finished[number] = None
        self._forget()

    def _is_over(self, header: Header) -> bool:
        """The gateway is gone, and repeats nothing."""
        incarnation = incarnation_of(header.id)
        return incarnation < self.retired or incarnation <= self.ended.get(header.gateway, -1)

    def _is_everywhere(self, numbered: Numbered) -> bool:
        groups = self.view.groups
        return all(
            self.have.get((place.group, process), 0) > place.position
            for place in numbered.places
            if place.group in groups
            for process in groups[place.group].working
        )

    def _forget(self) -> None:
        """From the oldest on, what all replicas have, and no gateway asks about."""
        if not self.is_sequencer:
            return
        before = self.next if not self.log else min(self.log)
        for number, numbered in list(self.log.items()):
            is_done = number in self.finished or self._is_over(numbered.envelope.header)
            if number >= self.kept or not is_done or not self._is_everywhere(numbered):
                break
            self._drop_below(number + 1)
        if self.standby is not None and min(self.log, default=self.next) > before:
            self.out.append(Send((self.standby,), Keep(floor=min(self.log, default=self.next)), urgent=False))

    def _drop_below(self, floor: int) -> None:
        gone = [number for number in self.log if number < floor]
        for number in gone:
            self.numbers.pop(self.log.pop(number).envelope.header.id, None)
            self.finished.pop(number, None)
        if gone:
            self.out.append(Persist([(NUMBERED + pack_u64(number), None) for number in gone], barrier=False))

    def _repeat(self) -> None:
        """To the stand-by and to replicas that are behind: what they lack may have been lost."""
        if not self.is_sequencer:
            return
        if self.standby is not None:
            self.out.append(Send((self.standby,), Keep(floor=min(self.log, default=self.next)), urgent=False))
            self._keep_from(self.kept)
        behind: dict[str, int] = {}
        for number, numbered in self.log.items():
            for place in numbered.places:
                group = self.view.groups.get(place.group)
                for process in group.working if group is not None and number < self.kept else ():
                    if self.have.get((place.group, process), 0) <= place.position:
                        behind[process] = behind.get(process, 0) + 1
                        if behind[process] <= AGAIN_MAX:
                            self._send_on(number, (process,))

    # ------------------------------------------------------------------------------------- stand-by and replicas

    def _on_keep(self, event: Receive, message: Keep) -> None:
        if self.settings.chain(self.view)[:1] != (event.source,) or self.process != self.standby:
            return
        if message.HasField("numbered") and message.numbered.number == self.next:
            self._store(message.numbered)
        self._drop_below(message.floor)
        self.out.append(Send((event.source,), Kept(next=self.next)))

    def _on_ordered(self, event: Receive, message: Ordered) -> None:
        numbered = message.numbered
        for place in numbered.places:
            group, position = place.group, place.position
            replica = self.replicas.get(group)
            if replica is None:
                continue
            replica.let_go(message.floor)
            have = Send((event.source,), Have(group=group, position=replica.position))
            if position > replica.position:
                self.out.append(have)  # something before it is missing
            elif position < replica.position:
                self.out += [have, ReadLog(group, position, 1, "")] if message.again else [have]
            else:
                self.out += replica.deliver(numbered, event.source, observe=self.observe)

    # ------------------------------------------------------------------------------- what drivers and checkers ask

    def mentions(self, group: str) -> bool:
        return any(place.group == group for numbered in self.log.values() for place in numbered.places)

    def oldest_open(self) -> int:
        return min(map(incarnation_of, self.numbers), default=U64_MAX)

    def buffers(self) -> dict[str, int]:
        return {"log": len(self.log), "have": len(self.have), "finished": len(self.finished)}

    def check_invariants(self) -> None:
        if self.kept > self.next or any(number >= self.next for number in self.log):
            raise InvariantBroken("a number that was not given")
