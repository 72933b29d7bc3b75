"""A failure detector that errs: late about crashes, and wrong about processes that are slow, cut off, or fine."""

from ordercast.sim.process import Process
from ordercast.sim.world import World

#: How long a process may be silent, about, before it is suspected.
SILENT_S = 0.25


class Suspicion:
    def __init__(self, world: World, role: str) -> None:
        """It watches the processes with this role."""
        self.world = world
        self.role = role
        #: Who is believed to be up, in which life.
        self.alive: dict[str, int] = {}
        self._suspected_until: dict[str, float] = {}
        self._silent_since: dict[str, float] = {}

    def suspect(self, name: str, seconds: float) -> None:
        """Whatever it does."""
        self._suspected_until[name] = self.world.now + seconds

    def look(self) -> None:
        now = self.world.now
        for name, process in self.world.processes.items():
            if self.role not in process.factories:
                continue
            if self._is_silent(process):
                since = self._silent_since.setdefault(name, now)
                if now - since > SILENT_S:
                    self.alive.pop(name, None)
            else:
                self._silent_since.pop(name, None)
                self.alive[name] = process.incarnation
            if self._suspected_until.get(name, 0.0) > now:
                self.alive.pop(name, None)

    def _is_silent(self, process: Process) -> bool:
        """Membership is somewhere in the network too: with the first half of the nodes."""
        if not process.up or process.paused_until > self.world.now:
            return True
        blocked = self.world.network.blocked
        others = [name for name in self.world.processes if name != process.name and not name.startswith("c")]
        cut_off = sum(
            1 for other in others if (process.name, other) in blocked or (other, process.name) in blocked
        )
        return 2 * cut_off > len(others)
