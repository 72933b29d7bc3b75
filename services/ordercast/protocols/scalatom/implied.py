"""Numbers that the stamps leave no choice about: decided without asking an acceptor.

[SCALATOM Fig.5 step 3] Whoever proposes, in whatever round, proposes the highest of the stamps that it has, from a
qualified majority at least; and what acceptors have voted for was proposed so. A replica stamps an envelope once,
and durably before anyone hears of it. So if all stamps are known, and those below the highest are not a qualified
majority by themselves, then every proposal that was or will be made is that highest stamp: it is decided, whether
acceptors know it or not. Who has to find out later, after a crash, collects stamps and gets to the same number.

That holds within the configurations that the envelope was sent to. In a later one there may be votes from before,
so there consensus decides; and what was decided here, the stamps that are handed over lead to again (README.md).

A group that is gone takes its stamps with it. So nobody proposes a number of its own for an envelope one of whose
groups is gone (`Held.is_whole`): it is decided already, and others know at what.

This saves a round trip and a sync where replicas agree on the time, as those that hear from one gateway in order
do. The coordinator waits a little for the last stamps. A replica whose stamp did not come in that time is late,
and is not waited for until one of its stamps does.
"""

from typing import TYPE_CHECKING

from ordercast.core.ids import pack_u64
from ordercast.core.machine import Send, SetTimer
from ordercast.core.quorums import has_majority
from ordercast.protocols.scalatom.held import Held
from ordercast.v1.consensus_pb2 import Decide

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom

STAMPS_TIMER = "stamps"


class Implied:
    def __init__(self, machine: "Scalatom") -> None:
        self.machine = machine
        #: Envelopes that a quorum has stamped, and until when it was worth waiting for the others.
        self.waiting: dict[bytes, float] = {}
        self.late: dict[str, None] = {}
        self._is_timer_set = False

    def on_quorum(self, held: Held) -> None:
        """We coordinate it, and a qualified majority has stamped it: decide, wait for more stamps, or propose."""
        machine = self.machine
        assert held.envelope is not None
        sn = held.highest()
        missing = self._missing(held)
        may_imply = machine.settings.stamps_wait_s and machine.may_skip_votes(held.envelope.header)
        if not may_imply or self.is_open(held, sn):
            machine.waits.proposes(held, [])
            machine.propose(held, sn)
            return
        for stamps in held.stamps.values():
            for process in stamps:
                self.late.pop(process, None)
        if not missing:
            machine.waits.proposes(held, [])
            self._decide(held, sn)
            return
        has_waited = held.id in self.waiting
        if not has_waited:
            wait_s = self._patience_s()
            self.waiting[held.id] = machine.now + wait_s
            self._set_timer(wait_s)
        late = [process for process in missing if process in self.late]
        if late:
            # Who was known to be late before was not waited for: the wait was for the last stamp of the quorum.
            machine.waits.proposes(held, late if has_waited else [])
            machine.propose(held, sn)

    def _patience_s(self) -> float:
        """Where decisions take long, so would asking the acceptors. But nobody else is to step in meanwhile."""
        settings = self.machine.settings
        return max(settings.stamps_wait_s, min(self.machine.decision_s, settings.silence_s / 2))

    def _decide(self, held: Held, sn: int) -> None:
        """As if consensus had said so."""
        machine = self.machine
        assert machine.view is not None and held.envelope is not None
        value, others = pack_u64(sn), machine.others(held.names)
        if others:
            is_awaited = machine.view.is_awaited_elsewhere(held.names, machine.process)
            machine.out.append(Send(others, Decide(instance=held.id, value=value), urgent=is_awaited))
        header = held.envelope.header
        machine.decide(held.id, value)
        machine.report_decided(header, sn)

    def is_open(self, held: Held, sn: int) -> bool:
        """Another proposer may have a quorum whose highest stamp is below this one."""
        assert self.machine.view is not None
        groups = self.machine.view.groups
        for name in held.names:
            lower = [process for process, stamp in held.stamps[name].items() if stamp < sn]
            if not lower or not has_majority(groups[name].replicas, lower):
                return False
        return True

    def heard(self, held: Held, process: str) -> None:
        """It stamped what is not decided yet. If we proposed that without it: in time, had we waited?"""
        if held.id in self.waiting:
            self.late.pop(process, None)

    def on_timer(self) -> None:
        machine = self.machine
        self._is_timer_set = False
        for id_ in [id_ for id_, until in self.waiting.items() if machine.now >= until]:
            held = machine.held.get(id_)
            if held is not None and held.sn is None and not held.proposed:
                self.late.update(dict.fromkeys(self._missing(held)))
                machine.propose_if_coordinator(held)
            del self.waiting[id_]
        if self.waiting:
            self._set_timer(min(self.waiting.values()) - machine.now)

    def _missing(self, held: Held) -> list[str]:
        assert self.machine.view is not None
        groups = self.machine.view.groups
        return [p for name in held.names for p in groups[name].replicas if p not in held.stamps.get(name, ())]

    def _set_timer(self, delay: float) -> None:
        if not self._is_timer_set:
            self._is_timer_set = True
            self.machine.out.append(SetTimer(STAMPS_TIMER, delay))
