"""Readers of several groups at once, in every run of a protocol whose logs are merged by their order keys.

They read what is on the disks of replicas, from one of them until it is gone or they feel like another; they
acknowledge some of it, die, and go on at their cursor; retention may be faster than they are. The merging is
the gateway's (core/merge.py), and so are the questions to idle groups. What they show is judged as it comes:
MergedChecker.
"""

from bisect import bisect_left
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from ordercast.core.batch_order import in_order
from ordercast.core.cells import cell_of, shares_cell
from ordercast.core.dropping import dropped_in
from ordercast.core.merge import Merge
from ordercast.core.place import Place
from ordercast.core.projection import ends_after, projected
from ordercast.core.questions import Questions
from ordercast.sim.checkers.merged import MergedChecker
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.disk import Log
from ordercast.v1.sequencer_pb2 import LogEntry

if TYPE_CHECKING:
    from ordercast.sim.cluster import Cluster
    from ordercast.sim.process import Process

READERS_MAX = 3
ENTRIES_AT_ONCE = (1, 3, 50)
ROOM = 4_000
#: Simulated seconds in which readers come to the end when all is healed.
END_S_MAX = 120.0


class MergedReaders:
    """All of a run, and what they ask together."""

    def __init__(self, cluster: "Cluster", random: Random) -> None:  # type: ignore[type-arg]
        self.cluster = cluster
        self.random = random
        self.questions = Questions()
        self.checker = MergedChecker(cluster.logs)
        self.readers: list[MergedReader] = []

    def begin(self) -> None:
        """In groups that are there from the beginning, as clients name them."""
        world, random = self.cluster.world, self.random
        addresses = self._addresses()
        for number in range(random.randint(1, READERS_MAX)):
            groups = sorted(random.sample(addresses, random.randint(1, len(addresses))))
            reader = self.add(f"r{number + 1}", groups)
            world.after(random.uniform(0.0, 0.3), self._turn, reader)

    def add(self, name: str, groups: Sequence[str]) -> "MergedReader":
        reader = MergedReader(self, name, tuple(groups), Random(self.random.random()))
        self.readers.append(reader)
        return reader

    def _addresses(self) -> list[str]:
        cells = {group.group: None for group in self.cluster.scenario.view.groups}
        plans = [plan for client in self.cluster.scenario.clients.values() for plan in client.plans]
        found = {group: None for plan in plans for group in plan.groups if cell_of(group) in cells}
        return sorted(found) or sorted(cells)

    def _turn(self, reader: "MergedReader") -> None:
        reader.turn()
        self.cluster.world.after(self.random.choice([0.005, 0.02, 0.1]), self._turn, reader)

    def ask(self) -> None:
        """Whoever is asked may not hear it; the question is repeated."""
        for question in self.questions.due(self.cluster.world.now):
            replicas = self.cluster.live_replicas(question.cell)
            if replicas:
                asked = replicas if question.again else [self.random.choice(replicas)]
                for process in asked:
                    self.cluster.advance_to(question.cell, process, question.order_key)

    def come_to_the_end(self) -> None:
        """When all is healed, every reader gets everything that was ever delivered, and a snapshot of it ends."""
        world = self.cluster.world
        end = Place(self.cluster.last_key(self.cluster.highest_sn() + 1))
        readers = self.readers
        for reader in list(readers):
            reader.settle()
            snapshot = self.add(f"{reader.name}'s snapshot", reader.groups)
            snapshot.settle()
            snapshot.until = end
            snapshot.restart()
            self._turn(snapshot)
        latest = world.now + END_S_MAX
        while missing := [reader for reader in readers if not reader.has_reached(end)]:
            if world.now > latest:
                raise Violation("termination", f"{missing[0].name} waits for ever: {missing[0].why()}")
            world.run_until(world.now + 0.1)
        for reader in readers:
            self.checker.check_end(reader.name)


class Source:
    """Where a reader is in one group's log: which replica it reads, and the position in the cell's log."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.cell = cell_of(group)
        self.process = ""
        self.position = 0


class MergedReader:
    def __init__(self, owner: MergedReaders, name: str, groups: tuple[str, ...], random: Random) -> None:
        self.owner = owner
        self.cluster = owner.cluster
        self.checker = owner.checker
        self.name = name
        self.groups = groups
        self.random = random
        self.entries_at_once = random.choice(ENTRIES_AT_ONCE)
        #: How likely it is in a turn that it dies, goes elsewhere with a group, acknowledges.
        self.dies = random.choice([0.0, 0.02, 0.1])
        self.moves = random.choice([0.0, 0.1, 0.5])
        self.acknowledges = random.choice([0.05, 0.5])
        self.until: Place | None = None
        #: Where a new life begins: agreed in membership's log, so it is never lost.
        self.cursor = Place()
        self.given = Place()
        self.sources: dict[str, Source] = {}
        self.merge: Merge[LogEntry] = Merge((), Place(), size_max=ROOM)
        self.checker.begins(name, groups, Place())
        self.restart()

    def settle(self) -> None:
        self.dies = self.moves = 0.0

    def restart(self) -> None:
        """It begins at its cursor, or where that is no longer possible, at the first cut that is whole."""
        groups = [group for group in self.groups if cell_of(group) not in self.cluster.membership.gone]
        self.merge = Merge(groups, self.cursor, self.until, size_max=ROOM)
        self.sources = {group: Source(group) for group in groups}
        self.given = self.cursor
        self.checker.goes_on(self.name, groups)

    def has_reached(self, end: Place) -> bool:
        if self.until is not None or not self.merge.sources:
            return self.merge.has_ended or not self.merge.sources
        if self.merge.passed < end.order_key:
            for name, source in self.merge.sources.items():
                if source.passed < end.order_key and not source.ahead:
                    self.owner.questions.want(cell_of(name), end.order_key, self.cluster.world.now)
            return False
        return not self.merge.size

    def why(self) -> str:
        passed = {name: source.passed.hex()[:16] for name, source in self.merge.sources.items()}
        return f"its groups have passed {passed}, {self.merge.size} bytes wait"

    # ------------------------------------------------------------------------------------------------- a turn

    def turn(self) -> None:
        random, now = self.random, self.cluster.world.now
        if random.random() < self.dies:
            self.restart()
        for name in list(self.sources):
            if cell_of(name) in self.cluster.membership.gone:
                self._leave(name)
        for source in self.sources.values():
            if self.merge.has_room(source.group) and not self._read(source):
                self._skip()
                return
        self._show()
        wanted = self.merge.wanted()
        if wanted is not None:
            for name in wanted.sources:
                self.owner.questions.want(cell_of(name), wanted.order_key, now)
        self.owner.ask()

    def _leave(self, name: str) -> None:
        self.merge.leave(name)
        del self.sources[name]
        self.owner.questions.forget(cell_of(name))
        self.checker.leaves(self.name, name)

    def _read(self, source: Source) -> bool:
        """Some entries, and how far the log is then said to have passed. False: nobody has what comes next."""
        process = self._process_of(source)
        if process is None:
            return True
        log = process.disk.logs.get(source.cell, Log())
        begins = self._position_in(log, source)
        if begins is None:
            source.process = ""
            return self._is_somewhere(source)
        source.position = begins
        first = source.position - log.begins
        entries = log.entries[first : first + self.entries_at_once]
        source.position += len(entries)
        watermark = b""
        if source.position == log.ends:
            watermark = process.watermarks.readable(source.cell, log.ends)
            # All that the cell has is in its log, so a group of it has passed what others of it have.
            watermark = max(watermark, log.entries[-1].order_key if log.entries else b"")
        passed = self.merge.sources[source.group].passed
        shown = [(entry.order_key, entry, entry.ByteSize()) for entry in self._for_group(source, entries)]
        self.merge.received(source.group, shown, watermark)
        if self.merge.sources[source.group].passed > passed:
            self.owner.questions.passed(
                source.cell, self.merge.sources[source.group].passed, self.cluster.world.now
            )
        return True

    def _process_of(self, source: Source) -> "Process | None":
        """The one that it reads from, or another one that answers and has the log."""
        processes = self.cluster.world.processes
        known = processes.get(source.process)
        if known is None or not self._serves(known, source) or self.random.random() < self.moves:
            names = [name for name in self._replicas(source) if self._serves(processes[name], source)]
            source.process = self.random.choice(names) if names else ""
            known = processes.get(source.process)
        return known

    def _replicas(self, source: Source) -> Sequence[str]:
        return list(self.cluster.membership.groups[source.cell].replicas)

    def _serves(self, process: "Process", source: Source) -> bool:
        """It may be behind, or have dropped what comes next: that is found out when it is read."""
        return process.is_answering and process.name in self._replicas(source) and source.cell in process.groups

    def _position_in(self, log: Log, source: Source) -> int | None:
        """Where to go on in this copy of the log; None if it does not have that."""
        begins = self._whole_from(log, source)
        if source.position:
            return source.position if begins <= source.position <= log.ends else None
        position = log.begins + bisect_left([entry.order_key for entry in log.entries], self.cursor_key())
        is_whole = not begins or position > begins or self._is_at_cursor(log, source, begins)
        return max(position, begins) if is_whole else None

    def _whole_from(self, log: Log, source: Source) -> int:
        """From which position on the group has lost nothing: retention may drop one group of a cell alone."""
        begins = log.begins
        if shares_cell(source.group):
            for position, entry in enumerate(log.entries, log.begins):
                if source.group in dropped_in(source.cell, entry):
                    begins = position + 1
        return begins

    def cursor_key(self) -> bytes:
        return self.merge.start.order_key

    def _is_at_cursor(self, log: Log, source: Source, position: int) -> bool:
        if position == log.ends:
            # Retention took all that there was. Nothing is missing if the cursor is behind that.
            return self._last_key(source) <= self.cursor_key()
        return log.entries[position - log.begins].order_key <= self.cursor_key()

    def _for_group(self, source: Source, entries: Sequence[LogEntry]) -> list[LogEntry]:
        if not shares_cell(source.group):
            return list(entries)
        there = [entry for entry in entries if source.group in ends_after(source.cell, entry)]
        return [projected(source.cell, source.group, entry) for entry in there]

    # ----------------------------------------------------------------------------------------- what retention took

    def _is_somewhere(self, source: Source) -> bool:
        """Whether it is worth waiting: somebody has it, or is not here to say."""
        for name in self._replicas(source):
            process = self.cluster.world.processes[name]
            log = process.disk.logs.get(source.cell)
            if name in self.cluster.gone:
                continue
            if log is None or not self._serves(process, source) or self._position_in(log, source) is not None:
                return True
            if source.position > log.ends:
                return True
        return False

    def _skip(self) -> None:
        """OutOfRange: it goes on at a cut at which every log is whole."""
        keys = [self.merge.start.order_key, self.merge.given]
        for source in self.sources.values():
            for name in self._replicas(source):
                log = self.cluster.world.processes[name].disk.logs.get(source.cell, Log())
                begins = self._whole_from(log, source)
                if begins:
                    first = log.entries[begins - log.begins :]
                    # A key that is longer than another one comes right behind it.
                    keys.append(first[0].order_key if first else self._last_key(source) + b"\0")
        self.cursor = Place(max(keys), 0)
        self.checker.begins(self.name, list(self.sources), self.cursor)
        self.restart()

    def _last_key(self, source: Source) -> bytes:
        keys = self.cluster.logs.groups[source.cell].keys
        return keys[-1] if keys else b""

    # --------------------------------------------------------------------------------------------- what it shows

    def _show(self) -> None:
        for merged in self.merge.take(self.random.choice([1, 5, 100])):
            found = in_order([(part.source, part.entry) for part in merged.parts])
            for message, offsets in found:
                place = Place(merged.order_key, message.nth)
                if place < self.given:
                    continue
                self.checker.shows(self.name, place, message.message.payload, offsets)
                self.given = place.behind()
                if self.random.random() < self.acknowledges / len(found):
                    self.cursor = self.given
                    self.checker.acknowledges(self.name)
            self.checker.has_shown(self.name, merged.order_key)
        for cell in dict.fromkeys(source.cell for source in self.sources.values()):
            self.checker.has_passed(self.name, cell, self.merge.passed)
