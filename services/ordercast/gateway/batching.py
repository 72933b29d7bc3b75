"""From what waits to envelopes: messages for the same cells leave in one, as many as piled up.

No timer delays them. What arrives while a producer's last envelope is under way fills the next one (producer.py
says what may follow what), and clients take turns in what leaves (turns.py).
"""

from collections.abc import Collection
from typing import TYPE_CHECKING
from zlib import crc32

from ordercast.core.cells import put_targets
from ordercast.core.ids import counter_of, envelope_id
from ordercast.core.machine import Observe
from ordercast.core.submission import Groups
from ordercast.core.tracing import KEPT
from ordercast.gateway.opened import Open
from ordercast.gateway.producer import Producer, WaitingRequest
from ordercast.gateway.ranges import ranges_of, targets_of
from ordercast.gateway.turns import as_fit
from ordercast.protocols.celllog.forgetting import CLIENTS_LEVEL
from ordercast.v1.common_pb2 import Envelope, Header

if TYPE_CHECKING:
    from ordercast.gateway.machine import Gateway


class Batching:
    def __init__(self, machine: "Gateway") -> None:
        self.machine = machine
        self.settings = machine.settings
        self.pressure = machine.pressure
        self.counter = 0
        #: Producers that have something waiting, and how much all of that is.
        self.waiting: dict[bytes, Producer] = {}
        self.waiting_bytes = 0
        self.open_by_cell: dict[str, int] = {}
        #: Envelopes to each cell since one told it what is finished.
        self.untold: dict[str, int] = {}
        #: Envelopes without an answer, by their cells.
        self.unanswered: dict[Groups, int] = {}
        #: Something changed since envelopes were last filled, so that anything may leave; or requests of these
        #: producers came that may.
        self.may_fill = False
        self.came: dict[bytes, Producer] = {}

    def add(self, producer: Producer, item: WaitingRequest) -> None:
        self.waiting_bytes += item.size
        self.waiting[producer.id] = producer
        # Others could not leave before it came, and to look at all that waits with each request would take long.
        if self._has_room(item.cells) and item.cells not in producer.busy_sets():
            self.came[producer.id] = producer

    @property
    def is_due(self) -> bool:
        """Something may leave."""
        return self.may_fill or bool(self.came)

    def fill(self) -> None:
        self._fill_envelopes((self.waiting if self.may_fill else self.came).values())
        self.may_fill, self.came = False, {}

    def answered(self, opened: Open) -> None:
        self.may_fill = True
        self.unanswered[opened.groups] -= 1
        if not self.unanswered[opened.groups]:
            del self.unanswered[opened.groups]

    def finished(self, opened: Open) -> None:
        self.may_fill = True
        for cell in opened.groups:
            self.open_by_cell[cell] -= 1

    def forget(self, cell: str) -> None:
        self.open_by_cell.pop(cell, None)
        self.untold.pop(cell, None)

    # --------------------------------------------------------------------------------------------- what leaves

    def _fill_envelopes(self, producers: Collection[Producer]) -> None:
        """[E6] By cells, from all these producers; what arrives meanwhile fills the next envelope."""
        while self.waiting and len(self.machine.open) < self.settings.envelopes_open_max:
            filled: dict[Groups, list[WaitingRequest]] = {}
            #: How much each client has under way, or None if nothing more of it may leave.
            clients: dict[str, int | None] = {}
            first: dict[Groups, int] = {}
            for producer in producers:
                if producer.owner not in clients:
                    clients[producer.owner] = self.pressure.under_way_of(producer.owner)
                under_way = clients[producer.owner]
                if under_way is None:
                    continue
                for item in producer.ready():
                    filled.setdefault(item.cells, []).append(item)
                    first[item.cells] = min(first.get(item.cells, under_way), under_way)
            sent = False
            for cells, items in sorted(filled.items(), key=lambda filling: first[filling[0]]):
                if not self._has_room(cells):
                    continue
                fit = as_fit(items, self.settings, self.pressure, self._client)
                if fit.items and (fit.is_full or not self._shall_wait(cells)):
                    sent = self.submit(cells, fit.items) or sent
            if not sent:
                return

    def _client(self, item: WaitingRequest) -> str:
        """The producer's, as it is now: its requests may have come over several connections, but stay in order."""
        return self.machine.intake.producers[item.producer].owner

    def _has_room(self, cells: Groups) -> bool:
        """No cell takes more than a quarter of what may be open: one without a quorum must not stop others."""
        open_max = self.settings.envelopes_open_max
        if len(self.machine.open) >= open_max:
            return False
        share = max(1, open_max // 4)
        return all(self.open_by_cell.get(cell, 0) < share for cell in cells)

    def _shall_wait(self, cells: Groups) -> bool:
        """An envelope is as much work as hundreds of messages: better fewer and full ones.

        So one that is not full waits while as many are under way to the same cells as it takes to keep their
        replicas busy. When there is too much, it waits until there is none.
        """
        busy = self.unanswered.get(cells, 0)
        return busy >= self.settings.envelopes_busy or (busy > 0 and self.pressure.is_high(self.machine.now))

    # --------------------------------------------------------------------------------------------- an envelope

    def submit(self, cells: Groups, items: list[WaitingRequest]) -> bool:
        machine, submission = self.machine, self.machine.submission
        coordinator = submission.choose(cells)
        if coordinator is None:
            return False
        producers = machine.intake.producers
        id_ = envelope_id(machine.incarnation, self.counter)
        self.counter += 1
        for item in items:
            self._take_out(item, producers[item.producer], id_)
        targets = targets_of(items, cells)
        ranges, requests = ranges_of(items, targets, names_clients=machine.view.level >= CLIENTS_LEVEL)
        done, open_ = self._finished_to_tell(cells)
        header = Header(
            id=id_,
            destinations=machine.view.destinations(cells),
            coordinator=coordinator,
            session=submission.session_of(producers[item.producer].seen for item in items),
            done=done,
            open=open_,
            ranges=ranges,
            gateway=machine.process,
            trace=self._trace_of(id_, items),
        )
        put_targets(header, targets)
        if self.settings.tells_time:
            waited_s = machine.now - min(item.taken.at for item in items)
            header.accepted_ns = max(int((machine.wall - waited_s) * 1e9), 1)
        body = b"".join([item.rows.batch for item in items])
        opened = Open(Envelope(header=header, body=body), cells, machine.now, requests=requests)
        machine.open[id_] = opened
        self.unanswered[cells] = self.unanswered.get(cells, 0) + 1
        for cell in cells:
            self.open_by_cell[cell] = self.open_by_cell.get(cell, 0) + 1
        submission.send(opened)
        if machine.observe:
            first = min(items, key=lambda item: item.taken.at)
            submitted = Observe("submit", id_, ",".join(cells), since=first.taken.at, trace=header.trace)
            submitted.blocked_on = producers[first.producer].waited_for(first)
            submitted.messages = sum(item.rows.messages for item in items)
            machine.out.append(submitted)
        return True

    def _take_out(self, item: WaitingRequest, producer: Producer, id_: bytes) -> None:
        """It leaves in this envelope."""
        producer.waiting.remove(item)
        self.waiting_bytes -= item.size
        self.pressure.leaves(item.taken, self.machine.now)
        # Those that have not had a turn come first, next time.
        self.waiting.pop(producer.id, None)
        if producer.waiting:
            self.waiting[producer.id] = producer
        ordered = not item.unordered or producer.undecided.get(id_, (item.cells, False))[1]
        producer.undecided[id_] = (item.cells, ordered)

    def _trace_of(self, id_: bytes, items: list[WaitingRequest]) -> bytes:
        """Whether its trace is kept: since a client's own is, or because it is one of the share that are."""
        asked = next((item.trace for item in items if item.trace), b"")
        if asked:
            return asked
        return KEPT if crc32(id_) < self.settings.sampling * (1 << 32) else b""

    def _finished_to_tell(self, cells: Groups) -> tuple[int, list[int]]:
        """[E8] Nothing, mostly. Each cell is told in its turn: who never hears it would never forget."""
        for cell in cells:
            self.untold[cell] = self.untold.get(cell, 0) + 1
        if max(self.untold[cell] for cell in cells) < self.settings.finished_every:
            return 0, []
        for cell in cells:
            self.untold[cell] = 0
        return self.counter - 1, [counter_of(opened) for opened in self.machine.open]
