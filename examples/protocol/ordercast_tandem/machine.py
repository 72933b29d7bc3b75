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

Logs, repeats and reports are those of `NumberedMachine`: what is here is how envelopes get their numbers. What the
protocol does not do is in README.md.
"""

from collections.abc import Iterator, Sequence

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import U64_MAX, counter_of, incarnation_of, pack_u64, unpack_u64
from ordercast.core.machine import Observe, Receive, Send
from ordercast.core.view import View
from ordercast.protocols.celllog.numbered import NumberedMachine
from ordercast.v1.sequencer_pb2 import Disseminate
from ordercast_tandem.protocol import Settings
from ordercast_tandem.tandem_pb2 import Have, Keep, Kept, Numbered, Ordered, Place, Unfinished

#: Envelopes that are numbered, and not known to be finished and delivered everywhere.
ENTRIES_MAX = 10_000
#: So many are sent again at once to a process that has fallen behind.
AGAIN_MAX = 64

#: Records: n<number> Numbered; c<group> the next position; f the next number.
NUMBERED, COUNTER, NEXT = b"n", b"c", b"f"


class Tandem(NumberedMachine):
    settings: Settings

    def __init__(self, process: str, settings: Settings, *, observe: bool = False) -> None:
        handlers = {
            Disseminate: self._on_envelope,
            Unfinished: self._on_unfinished,
            Keep: self._on_keep,
            Kept: self._on_kept,
            Ordered: self._on_ordered,
            Have: self._on_have,
        }
        super().__init__(process, settings, handlers, observe=observe)
        #: As the view says; empty if there is none.
        self.sequencer = self.standby = ""
        # What the sequencer and the stand-by have in common, and on their disks.
        self.log: dict[int, Numbered] = {}
        self.numbers: dict[bytes, int] = {}
        self.counters: dict[str, int] = {}
        self.next = 0
        # What only the sequencer knows: how far the stand-by is, and every replica of each group.
        self.kept = 0
        self.is_synced = False
        self.have: dict[tuple[str, str], int] = {}
        self.finished: dict[int, None] = {}

    def load(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        for key, value in records:
            if key[:1] == NUMBERED:
                self.log[unpack_u64(key[1:])] = Numbered.FromString(value)
            elif key[:1] == COUNTER:
                self.counters[key[1:].decode()] = unpack_u64(value)
            else:
                self.next = unpack_u64(value)
        self.log = dict(sorted(self.log.items()))
        self.numbers = {numbered.envelope.header.id: number for number, numbered in self.log.items()}

    # ------------------------------------------------------------------------------------------------ who is who

    @property
    def is_sequencer(self) -> bool:
        return self.process == self.sequencer

    @property
    def floor(self) -> int:
        """The oldest number that is not forgotten; or the next one, if there is none."""
        return min(self.log, default=self.next)

    def on_view(self, before: View) -> None:
        groups = self.view.groups
        for name in [name for name in self.counters if name not in groups]:
            del self.counters[name]
            self.changes.append((COUNTER + name.encode(), None))
        self.have = {key: position for key, position in self.have.items() if key[0] in groups}
        chain = self.settings.chain(self.view)
        if chain != (self.sequencer, self.standby):
            self.sequencer, self.standby = chain
            if self.is_sequencer and not self.standby:
                self.is_synced, self.kept = True, self.next
                self._send_from(self.floor)
            self.on_connected(self.sequencer)
        self.forget()

    def on_connected(self, peer: str) -> None:
        """What was sent to this process may be lost, or was never sent: say where we are."""
        if self.is_sequencer and peer == self.standby:
            self._keep_from(self.kept)
        if peer == self.sequencer:
            self.out += [Send((peer,), Have(group=name, position=r.position)) for name, r in self.replicas.items()]
            if self.process == self.standby:
                self.out.append(Send((peer,), Kept(next=self.next)))

    def on_tick(self) -> None:
        """To the stand-by and to replicas that are behind: what they lack may have been lost."""
        if not self.is_sequencer:
            return
        self._tell_floor()
        self._keep_from(self.kept)
        again: dict[str, int] = {}
        for number in [number for number in self.log if number < self.kept]:
            for process in dict.fromkeys(self._lacking(number)):
                again[process] = again.get(process, 0) + 1
                if again[process] <= AGAIN_MAX:
                    self._send_on(number, (process,))

    # ------------------------------------------------------------------------------------------------ sequencer

    def _on_envelope(self, event: Receive, message: Disseminate) -> None:
        header = message.envelope.header
        if not self.is_sequencer or not self.is_synced or self.is_over(header):
            return  # its gateway repeats it, if there is one
        number = self.numbers.get(header.id)
        if number is not None:
            if number < self.kept and message.again:
                self._send_on(number, again=True)
        elif len(self.log) < ENTRIES_MAX:
            groups = self.view.checked_names(header.destinations)
            places = [Place(group=group, position=self.counters.get(group, 0)) for group in groups]
            self._store(Numbered(number=self.next, envelope=message.envelope, places=places))
            if self.observe:
                self.out.append(Observe("numbered", header.id))
            self._keep_from(self.next - 1)

    def _store(self, numbered: Numbered) -> None:
        self.log[numbered.number] = numbered
        self.numbers[numbered.envelope.header.id] = numbered.number
        self.next = numbered.number + 1
        self.changes.append((NUMBERED + pack_u64(numbered.number), numbered.SerializeToString()))
        self.changes.append((NEXT, pack_u64(self.next)))
        for place in numbered.places:
            self.counters[place.group] = place.position + 1
            self.changes.append((COUNTER + place.group.encode(), pack_u64(place.position + 1)))

    def _keep_from(self, number: int) -> None:
        """To the stand-by, if there is one. Without one, our own disk is enough."""
        if not self.standby:
            before, self.kept = self.kept, self.next
            self._send_from(before)
            return
        for one in range(max(number, self.floor), self.next)[:AGAIN_MAX]:
            self.out.append(Send((self.standby,), Keep(numbered=self.log[one], floor=self.floor)))

    def _on_kept(self, event: Receive, message: Kept) -> None:
        if event.source != self.standby or not self.is_sequencer or message.next > self.next:
            return
        self.is_synced = True
        before, self.kept = self.kept, max(self.kept, message.next)
        self._send_from(before)

    def _send_from(self, number: int) -> None:
        """To all replicas, what is on both disks."""
        for one in range(max(number, self.floor), self.kept):
            self._send_on(one)

    def _send_on(self, number: int, to: Sequence[str] = (), *, again: bool = False) -> None:
        """To these replicas; to all of them, if none is named."""
        to = to or self.view.replicas_of(tuple(place.group for place in self.log[number].places))
        self.out.append(Send(to, Ordered(numbered=self.log[number], floor=self.floor, again=again)))

    # ----------------------------------------------------------------------------------------------- forgetting

    def _on_have(self, event: Receive, message: Have) -> None:
        key = (message.group, event.source)
        self.have[key] = max(message.position, self.have.get(key, 0))
        self.forget()

    def _on_unfinished(self, event: Receive, message: Unfinished) -> None:
        """All other envelopes of this gateway are finished: it has sent them before it said this."""
        for id_, number in self.numbers.items():
            if incarnation_of(id_) == event.incarnation and counter_of(id_) not in message.counters:
                self.finished[number] = None
        self.forget()

    def _lacking(self, number: int) -> Iterator[str]:
        """The replicas that are not known to have it, once for each group."""
        for place in self.log[number].places:
            group = self.view.groups.get(place.group)
            for process in group.working if group is not None else ():
                if self.have.get((place.group, process), 0) <= place.position:
                    yield process

    def forget(self) -> None:
        """From the oldest on, what all replicas have, and no gateway asks about."""
        before = self.floor
        for number in list(self.log) if self.is_sequencer else ():
            is_done = number in self.finished or self.is_over(self.log[number].envelope.header)
            if number >= self.kept or not is_done or any(self._lacking(number)):
                break
            self._drop_below(number + 1)
        if self.floor > before:
            self._tell_floor()

    def _tell_floor(self) -> None:
        if self.standby:
            self.out.append(Send((self.standby,), Keep(floor=self.floor), urgent=False))

    def _drop_below(self, floor: int) -> None:
        for number in [number for number in self.log if number < floor]:
            del self.numbers[self.log.pop(number).envelope.header.id]
            self.finished.pop(number, None)
            self.changes.append((NUMBERED + pack_u64(number), None))

    # ------------------------------------------------------------------------------------- stand-by and replicas

    def _on_keep(self, event: Receive, message: Keep) -> None:
        if event.source != self.sequencer or self.process != self.standby:
            return
        if message.HasField("numbered") and message.numbered.number == self.next:
            self._store(message.numbered)
        self._drop_below(message.floor)
        self.out.append(Send((event.source,), Kept(next=self.next)))

    def _on_ordered(self, event: Receive, message: Ordered) -> None:
        """Deliver it at its position. If something before it is missing, the answer says so."""
        numbered = message.numbered
        for place in numbered.places:
            log = self.replicas.get(place.group)
            if log is None:
                continue
            log.let_go(message.floor)
            if place.position == log.position:
                self.deliver(log, numbered.envelope, numbered.number)
            elif place.position < log.position and message.again:
                self.report_again(log, place.position)
            self.out.append(Send((event.source,), Have(group=place.group, position=log.position)))

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
