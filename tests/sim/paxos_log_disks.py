"""Disks that are lost, and sometimes come back, in a simulated run of the replicated log.

An operator stands in for membership: it has a command put into the log that names the newest disk of a member that
does not vote, and that member's client lets it ask to be readmitted when it applies the command.
"""

from random import Random
from typing import TYPE_CHECKING

from ordercast.core.quorums import majority
from ordercast.protocols.paxos.log_state import LogState
from ordercast.sim.disk import Disk
from ordercast.sim.faults import Faults

if TYPE_CHECKING:
    from tests.sim.paxos_log import Run

OPERATOR_S = 0.3


class LogFaults(Faults):
    """Nobody is gone for good who is needed, now that not everybody may vote."""

    disks: "Disks"

    def _can_lose(self, name: str) -> bool:
        return super()._can_lose(name) and self.disks.can_lose(name)


class Disks:
    def __init__(self, run: "Run", random: Random) -> None:
        self.run = run
        self.random = random
        #: How many disks each member has had, and those that were lost.
        self.count = dict.fromkeys(run.members, 1)
        self.lost: dict[str, list[tuple[bytes, Disk]]] = {name: [] for name in run.members}
        #: The disk that the member's process uses when it starts.
        self.present = {name: self._name(name) for name in run.members}
        self.losses = self.returns = 0

    def schedule(self, rate: float, until: float) -> None:
        world = self.run.world
        time = self.random.expovariate(rate)
        while time < until:
            world.at(time, self.lose_one)
            time += self.random.expovariate(rate)
        world.at(OPERATOR_S, self._operate)

    def _name(self, member: str) -> bytes:
        return f"{member}/{self.count[member]}".encode()

    # ------------------------------------------------------------------------------------------- faults

    def votes(self, name: str) -> bool:
        """By what is on the newest disk of the member."""
        disk = self.run.world.processes[name].disk
        if self.present[name] != self._name(name):
            disk = self.lost[name][-1][1]  # An old one is in its place, and the newest waits here.
        state = LogState()
        records = list(disk.records.get("log", {}).items())
        state.recover(records, b"disk")
        return state.votes

    def can_lose(self, name: str) -> bool:
        """A minority may be without what it promised, at any one time."""
        others = [other for other in self.run.members if other != name and other not in self.run.faults.gone]
        return sum(1 for other in others if self.votes(other)) >= majority(len(self.run.members))

    def lose_one(self) -> None:
        name = self.random.choice(self.run.members)
        if self.present[name] != self._name(name):
            return
        if self.lost[name] and self.random.random() < 0.3:
            self._old_disk_returns(name)
        elif self.can_lose(name) and name not in self.run.faults.gone:
            self.lose(name)

    def lose(self, name: str) -> None:
        world, process = self.run.world, self.run.world.processes[name]
        world.note(name, "loses its disk")
        self.losses += 1
        process.crash()
        self.lost[name].append((self.present[name], process.disk))
        self.count[name] += 1
        self._insert(name, self._name(name), Disk())
        world.after(self.random.uniform(0.02, 0.5), self.run.faults.restart, name)

    def _old_disk_returns(self, name: str) -> None:
        """Somebody finds it and puts it in, for a while: a past that everyone else may have outlived."""
        world, process = self.run.world, self.run.world.processes[name]
        world.note(name, "comes back with an old disk")
        self.returns += 1
        process.crash()
        index = self.random.randrange(len(self.lost[name]))
        identity, disk = self.lost[name][index]
        newest = (self.present[name], process.disk)
        self.lost[name].append(newest)
        self._insert(name, identity, disk)
        world.after(0.01, self.run.faults.restart, name)
        world.after(self.random.uniform(0.1, 1.0), self._newest_returns, name)

    def _newest_returns(self, name: str) -> None:
        self.run.world.processes[name].crash()
        identity, disk = self.lost[name].pop()
        self._insert(name, identity, disk)
        self.run.faults.restart(name)

    def _insert(self, name: str, identity: bytes, disk: Disk) -> None:
        process = self.run.world.processes[name]
        assert not process.up
        disk.on_apply = process.disk.on_apply
        self.present[name] = identity
        process.disk = disk

    # ----------------------------------------------------------------------------------------- operating

    def _operate(self) -> None:
        run = self.run
        leaders = [name for name in run.members if run.is_up(name) and run.machine(name).reign is not None]
        joined = {join_of(value) for value in run.ledger.chosen.values()}
        for name in run.members:
            identity = self.present[name]
            is_newest = identity == self._name(name)
            is_mute = run.is_up(name) and not run.machine(name).state.votes
            if leaders and is_newest and is_mute and identity not in joined:
                run.append(self.random.choice(leaders), b"join " + identity + b" ")
        run.world.after(OPERATOR_S, self._operate)


def join_of(value: bytes | None) -> bytes | None:
    """The disk that the command names, if it is one to readmit a member."""
    parts = (value or b"").split()
    return parts[1] if parts and parts[0] == b"join" else None
