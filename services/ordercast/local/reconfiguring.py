"""Chaos in which the replicas of the groups change all the time: other nodes, more and fewer, drained, lost disks.

Changes are asked for in a thread of their own, whatever else is wrong at that moment, so they meet every fault in
every stage. They may be refused; those that were begun have to come to an end when the faults are over.

Disks are another matter. A killed process comes back with what it had promised, one without its disk does not: so
at most a minority of any configuration that still counts may lose theirs. The next disk is lost only when nothing
of the last loss is left, and no group has so few replicas that it could not do without one.
"""

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import ordercast
from ordercast.client.errors import OrdercastError
from ordercast.core.cells import cell_of
from ordercast.core.members import address_of, kind_of, places_of
from ordercast.core.view import FIRST
from ordercast.local.chaos import Chaos
from ordercast.local.cluster import ClusterError
from ordercast.local.configurations import (
    CALL_S_MAX,
    can_do_without,
    cluster_of,
    is_changing,
    is_settled,
    text_of,
)
from ordercast.v1.membership_pb2 import Group

#: Between these, a group can lose one disk, and there is still another node to go to or to come from.
REPLICAS_MIN = 3
REPLICAS_MAX = 5
WORKERS = 2
PAUSE_S = (0.1, 1.0)
DRAINED_S = (2.0, 8.0)
#: Of a change that is met in its preparation.
CANCEL_CHANCE = 0.15
DRAIN_CHANCE = 0.1
#: Membership has to notice first that the node is down.
GIVE_UP_AGAIN_S = 0.5
#: For a change in which everybody is there: copying, switching, and the same again for whoever lost a disk.
FINISH_S_MAX = 90.0
LOOK_S = 0.2


@dataclass(slots=True)
class Reconfigured:
    """What became of it."""

    #: Configurations that began, also by a drain or a lost disk, and all but a minority has started in.
    changes_done: int = 0
    changes_cancelled: int = 0
    #: Another one was under way, or there was no place, or nobody answered.
    changes_refused: int = 0
    #: They did not come to an end, although everybody is there.
    changes_unfinished: int = 0
    drains: int = 0
    disk_losses: int = 0


# ---------------------------------------------------------------------------------------------------- changes


class Changes:
    """Asks for one change after the other until it is stopped, and remembers what it has to undo."""

    def __init__(
        self,
        gateways: Sequence[str],
        seed: int,
        reconfigured: Reconfigured,
        note: Callable[[str, list[str]], None],
    ) -> None:
        self.gateways = list(gateways)
        self.random = Random(seed)
        self.reconfigured = reconfigured
        self.note = note
        #: Who is drained, and until when.
        self.drained: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="changes", daemon=True)

    @contextlib.contextmanager
    def under_way(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()

    def _run(self) -> None:
        with ordercast.connect_sync(*self.gateways, timeout=CALL_S_MAX) as connection:
            while not self._stop.wait(self.random.uniform(*PAUSE_S)):
                try:
                    self._one_step(connection)
                except OrdercastError:
                    # What it came to is seen in the end: a change whose answer was lost may be under way.
                    self.reconfigured.changes_refused += 1

    def _one_step(self, connection: Any) -> None:
        for name in [name for name, until in self.drained.items() if until <= time.monotonic()]:
            connection.drain_node(name, draining=False)
            self.note("undrain", [name])
            del self.drained[name]
        cluster = connection.cluster(shared_groups=True)
        if not self.drained and self.random.random() < DRAIN_CHANCE:
            self._drain(connection, self.random.choice(sorted(node.name for node in cluster.nodes)))
            return
        group = self.random.choice(sorted(cluster.groups, key=lambda group: group.name))
        if not is_changing(group):
            nodes = [node.name for node in cluster.nodes if "sequencer" in node.services]
            self._change(connection, group, sorted(nodes))
        elif group.HasField("next") and self.random.random() < CANCEL_CHANCE:
            connection.cancel_change(group.name)
            self.reconfigured.changes_cancelled += 1
            self.note(f"cancel in {group.name}", [])

    def _drain(self, connection: Any, name: str) -> None:
        # Before it is known to be so: it has to be undone also if the answer is lost.
        self.drained[name] = time.monotonic() + self.random.uniform(*DRAINED_S)
        connection.drain_node(name)
        self.reconfigured.drains += 1
        self.note("drain", [name])

    def _change(self, connection: Any, group: Group, nodes: Sequence[str]) -> None:
        """Half of the time it is left to the cluster which replica goes, and where to."""
        members = places_of(group)
        others = [name for name in nodes if name not in members]
        kinds = ["replace", "replace"] if others else []
        if others and len(members) < REPLICAS_MAX:
            kinds.append("add")
        if len(members) > REPLICAS_MIN:
            kinds.append("remove")
        if not kinds:
            return
        kind = self.random.choice(kinds)
        node = self._one_or_any(members) if kind != "add" else ""
        to = self._one_or_any(others) if kind != "remove" else ""
        connection.change_replicas(group.name, kind, node=node, to=to)
        self.note(f"{kind} in {group.name}", [node or "any", *([to or "any"] if kind != "remove" else [])])

    def _one_or_any(self, names: Iterable[str]) -> str:
        return self.random.choice(sorted(names)) if self.random.random() < 0.5 else ""

    def finish(self, timeout_s: float = FINISH_S_MAX) -> list[str]:
        """Nothing is drained any more, and everybody is there: what still does not come to its end."""
        deadline = time.monotonic() + timeout_s
        unfinished = ["no gateway answers"]
        with ordercast.connect_sync(*self.gateways, timeout=CALL_S_MAX) as connection:
            while unfinished and time.monotonic() < deadline:
                time.sleep(LOOK_S)
                with contextlib.suppress(OrdercastError):
                    cluster = connection.cluster(shared_groups=True)
                    drained = [node.name for node in cluster.nodes if node.draining]
                    for name in {*drained, *self.drained}:
                        connection.drain_node(name, draining=False)
                        self.drained.pop(name, None)
                    # One group for each cell: what is changed is the cell.
                    cells = {cell_of(address_of(group)): group for group in cluster.groups}.values()
                    groups = [group for group in cells if not is_settled(group)]
                    unfinished = [*map(text_of, groups), *(f"{name} is drained" for name in drained)]
                    self.reconfigured.changes_done = sum(group.configuration - FIRST for group in cells)
        return unfinished


# ------------------------------------------------------------------------------------------------- lost disks


class DiskLosses:
    """Which disk may be lost now, and telling the cluster that it was."""

    def __init__(self, gateways: Sequence[str]) -> None:
        self.gateways = list(gateways)
        #: Who lost one last, and what a gateway has to have heard of to know about it.
        self.last = ""
        self.revision_min = 0

    def may_lose(self, name: str) -> bool:
        """Of a state that is late, too: what it shows as restored was so, and group sizes stay within bounds.

        Some groups shrink when somebody seems to be away; so in those, nobody may be.
        """
        cluster = cluster_of(self.gateways)
        if cluster is None or cluster.revision < self.revision_min:
            return False
        return all(
            not (group.lost or group.previous.lost or self.last in group.starting)
            and can_do_without(group, name)
            and (not kind_of(group).follows_processes or is_settled(group))
            for group in cluster.groups
        )

    def give_up(self, name: str) -> bool:
        """Refused as long as membership does not notice that the node is gone."""
        with (
            contextlib.suppress(OrdercastError),
            ordercast.connect_sync(*self.gateways, timeout=CALL_S_MAX) as connection,
        ):
            node = connection.give_up_disk(name)
            self.last, self.revision_min = name, node.revision
            return True
        return False


# ------------------------------------------------------------------------------------------------------- chaos


class ReconfiguringChaos(Chaos):
    """Takes what `Chaos` takes. There has to be a worker, and a node more than a group has replicas at first."""

    def __init__(self, directory: Path, **options: Any) -> None:
        super().__init__(directory, **{"workers": WORKERS, **options})
        self.reconfigured = Reconfigured()
        self.changes = Changes(self.cluster.gateways, self.random.getrandbits(32), self.reconfigured, self._note)
        self.losses = DiskLosses(self.cluster.gateways)

    def _reconfigured(self) -> dict[str, int]:
        return asdict(self.reconfigured)

    def _strike(self) -> None:
        with self.changes.under_way():
            super()._strike()

    def _actions(self) -> list[Callable[[], None]]:
        return [*super()._actions(), self._lose_disk]

    def _end_faults(self) -> None:
        super()._end_faults()
        unfinished = self.changes.finish()
        self.reconfigured.changes_unfinished = len(unfinished)
        self.broken += unfinished

    def _lose_disk(self) -> None:
        """Lose the disk of a worker. A membership node would need the others' consent to vote again."""
        workers = [name for name, member in self.cluster.members.items() if "membership" not in member.services]
        name = self.random.choice(sorted(workers))
        if not self.losses.may_lose(name):
            return
        self._note("lose disk", [name])
        self.cluster.kill(name)
        shutil.rmtree(self.cluster.members[name].data)
        self.reconfigured.disk_losses += 1
        deadline = time.monotonic() + FINISH_S_MAX
        self._later(0.0, lambda: self._give_up_disk(name, deadline))

    def _give_up_disk(self, name: str, deadline: float) -> None:
        if self.losses.give_up(name):
            self._note("give up disk", [name])
            self._restart([name])
        elif time.monotonic() > deadline:
            raise ClusterError(f"the disk of {name} cannot be given up after {FINISH_S_MAX:.0f} s")
        else:
            self._later(GIVE_UP_AGAIN_S, lambda: self._give_up_disk(name, deadline))
