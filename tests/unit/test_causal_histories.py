"""Several logs as one stream in causal order: over random histories."""

from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.client.causal_merge import CausalMerge, Time
from ordercast.v1.isis_pb2 import CastStamp
from tests.unit.causal_stamps import IDS, place_of, stamp, time_of


@dataclass
class Cast:
    name: str
    group: str
    stamp: CastStamp
    #: All casts that happened before it, in any group.
    past: frozenset[str]
    is_shown: bool
    offset: int = 0


@dataclass
class Room:
    """A group: its members, the view it is in, and its log, as far as views have ended."""

    name: str
    members: list[str]
    view: int = 1
    casts: list[Cast] = field(default_factory=list)
    log: list[Cast] = field(default_factory=list)
    end: int = 0
    #: (view, offset) that replicas would tell.
    facts: list[tuple[int, int]] = field(default_factory=list)


class History:
    """Processes that cast in overlapping groups, deliver late, and whose groups change their views."""

    def __init__(self, random: Random, steps: int) -> None:
        self.random = random
        self.past: dict[str, frozenset[str]] = {name: frozenset() for name in "pqrs"}
        self.known: dict[str, dict[str, Time]] = {name: {} for name in "pqrs"}
        self.rooms = {name: Room(name, sorted(random.sample("pqrs", 3))) for name in IDS}
        self.casts: dict[str, Cast] = {}
        for _ in range(steps):
            step = random.choices([self.cast, self.deliver, self.answer, self.change_view], [4, 6, 3, 1])[0]
            step()
        for room in self.rooms.values():
            self._end_view(room)

    def cast(self, seen: Cast | None = None) -> None:
        """`seen`: what the client has read for whom a member casts this, wherever that was."""
        room = self.random.choice(list(self.rooms.values()))
        process = self.random.choice(room.members)
        place = room.members.index(process)
        known = {name: Time(time.view, dict(time.counts)) for name, time in self.known[process].items()}
        past = self.past[process]
        if seen is not None:
            past |= seen.past | {seen.name}
            self._know(known, seen)
        number = 1 + sum(cast.stamp.key.member == place for cast in room.casts)
        own = known.pop(room.name, Time())
        times = [time_of(name, known[name].view, known[name].counts) for name in sorted(known)]
        if own.view == room.view:
            times.append(time_of(room.name, own.view, {m: count for m, count in own.counts.items() if m != place}))
        name = f"{room.name}/{room.view}/{place}.{number}"
        # Stamps of one caster rise, whoever it casts for.
        for before in room.casts:
            if before.stamp.key.member == place:
                past |= before.past | {before.name}
                times += before.stamp.times
        is_shown = self.random.random() < 0.8
        cast = Cast(name, room.name, stamp(room.view, place, number, *times), past, is_shown)
        room.casts.append(cast)
        self.casts[name] = cast
        self._take(process, cast)

    def deliver(self) -> None:
        process = self.random.choice("pqrs")
        rooms = [room for room in self.rooms.values() if process in room.members]
        lacking = [c for room in rooms for c in room.casts if c.name not in self.past[process]]
        if lacking:
            mine = [room.name for room in rooms]
            cast = self.random.choice(lacking)
            if all(n in self.past[process] for n in cast.past if self.casts[n].group in mine):
                self._take(process, cast)

    def answer(self) -> None:
        if self.casts:
            self.cast(self.random.choice(list(self.casts.values())))

    def change_view(self) -> None:
        self._end_view(self.random.choice(list(self.rooms.values())))

    def _end_view(self, room: Room) -> None:
        """All that was cast is delivered by all; what is known of it shrinks to a number, here and there."""
        for process in room.members:
            for cast in room.casts:
                self._take(process, cast)
        left = list(room.casts)
        while left:
            names = {cast.name for cast in left}
            cast = self.random.choice([cast for cast in left if not cast.past & names])
            left.remove(cast)
            room.log.append(cast)
            cast.offset = room.end
            room.end += cast.is_shown
        room.casts = []
        room.view += 1
        room.facts.append((room.view, room.end))
        for known in self.known.values():
            if room.name in known and self.random.random() < 0.7:
                known[room.name] = Time(room.view)

    def _take(self, process: str, cast: Cast) -> None:
        self.past[process] |= cast.past | {cast.name}
        self._know(self.known[process], cast)

    def _know(self, known: dict[str, Time], cast: Cast) -> None:
        names = {id_: name for name, id_ in IDS.items()}
        for time in cast.stamp.times:
            counts = dict(zip(time.members, time.counts, strict=True))
            known.setdefault(names[time.group], Time()).merge(time.view, counts)
        key = cast.stamp.key
        known.setdefault(cast.group, Time()).merge(cast.stamp.view, {key.member: key.number})

    def shown(self, group: str) -> list[Cast]:
        return [cast for cast in self.rooms[group].log if cast.is_shown]

    def is_contradictory(self) -> bool:
        """No order of all casts keeps both what stamps say and the order of each log.

        A stamp says more than what happened before: a bare view names all from before it.
        """
        graph = {
            cast.name: {other.name for other in self.casts.values() if is_named(other, cast.stamp)}
            for cast in self.casts.values()
        }
        for room in self.rooms.values():
            for before, cast in pairwise(room.log):
                graph[cast.name].add(before.name)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError:
            return True
        return False


def is_named(cast: Cast, by: CastStamp) -> bool:
    """Whether a stamp says that it comes after this cast."""
    view, key = cast.stamp.view, cast.stamp.key
    for time in by.times:
        counts = dict(zip(time.members, time.counts, strict=True))
        is_counted = view == time.view and key.number <= counts.get(key.member, 0)
        if time.group == IDS[cast.group] and (view < time.view or is_counted):
            return True
    return False


def read(history: History, random: Random, starts: dict[str, int], *, look_back: int = 0) -> list[str]:
    """What comes out, if the streams come in some order, and replicas tell what they know when they are asked."""
    merge: CausalMerge[str] = CausalMerge(IDS)
    streams = {}
    for group in IDS:
        first = max(0, starts[group] - look_back)
        merge.begin(group, first)
        streams[group] = [cast for cast in history.shown(group) if cast.offset >= first]
    released: list[str] = []
    while True:
        while (name := merge.next()) is not None:
            released.append(name)
        coming = [group for group, stream in streams.items() if stream and merge.has_room(group)]
        asks = merge.asks()
        if asks and (not coming or random.random() < 0.2):
            group = random.choice(asks)
            room = history.rooms[group]
            # Some replicas are behind: after a few questions each of them says how it is.
            view, offset = random.choice(room.facts[-2:] if coming else room.facts[-1:])
            merge.told(group, Time(view), offset)
        elif coming:
            group = random.choice(coming)
            cast = streams[group].pop(0)
            if cast.offset < starts[group]:
                merge.pass_over(group, place_of(cast.stamp), end=cast.offset + 1)
            else:
                merge.add(group, place_of(cast.stamp), cast.name, offset=cast.offset, end=cast.offset + 1, size=1)
        else:
            return released


def check(history: History, released: list[str], starts: dict[str, int]) -> None:
    wanted = [c for group in IDS for c in history.shown(group) if c.offset >= starts[group]]
    assert sorted(released) == sorted(cast.name for cast in wanted)
    place = {name: index for index, name in enumerate(released)}
    for name in released:
        late = [n for n in history.casts[name].past if n in place and place[n] > place[name]]
        assert not late, f"{name} came out before {late}"
    if not history.is_contradictory():
        for group in IDS:
            order = [name for name in released if name.startswith(group)]
            assert order == [cast.name for cast in wanted if cast.group == group]


@settings(max_examples=120)
@given(seed=st.integers(0, 1 << 32), steps=st.integers(1, 80))
def test_random_histories_come_out_in_causal_order_and_whole(seed, steps):
    random = Random(seed)
    history = History(random, steps)
    starts = dict.fromkeys(IDS, 0)
    check(history, read(history, random, starts), starts)


@settings(max_examples=60)
@given(seed=st.integers(0, 1 << 32), steps=st.integers(1, 80), look_back=st.integers(0, 8))
def test_reading_may_begin_anywhere(seed, steps, look_back):
    random = Random(seed)
    history = History(random, steps)
    starts = {group: random.randint(0, history.rooms[group].end) for group in IDS}
    check(history, read(history, random, starts, look_back=look_back), starts)


def test_some_of_the_histories_have_logs_that_contradict_each_other():
    found = sum(History(Random(seed), 60).is_contradictory() for seed in range(40))
    assert 5 < found < 35
