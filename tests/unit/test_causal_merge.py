"""Several logs as one stream in causal order: rule by rule, over random histories, and against a gateway."""

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from random import Random

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ordercast
from ordercast.client import aio_causal, causal_merge
from ordercast.client.causal_merge import CausalMerge, Time
from ordercast.core.ids import envelope_id, order_key
from ordercast.errors import FailedPrecondition, Internal, InvalidArgument, ResourceExhausted
from ordercast.v1.common_pb2 import (
    Batch,
    Destination,
    Envelope,
    Header,
    Message,
    ProducerRange,
    RangeOutcome,
    Span,
)
from ordercast.v1.gateway_pb2 import DescribeGroupResponse, ListDomainsResponse, ReplicaStatus
from ordercast.v1.gateway_pb2_grpc import add_GatewayServiceServicer_to_server
from ordercast.v1.isis_pb2 import CastKey, CastStamp, GroupTime
from ordercast.v1.membership_pb2 import Domain, Group
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, LogEntry
from tests.unit.client_gateway import ClusterModel, GatewayServicer

IDS = {"a": "a#1", "b": "b#2", "c": "c#3"}


def time_of(group: str, view: int, counts: dict[int, int] | None = None) -> GroupTime:
    members = sorted(counts or {})
    return GroupTime(group=IDS[group], view=view, members=members, counts=[(counts or {})[m] for m in members])


def stamp(view: int, member: int, number: int, *times: GroupTime, total: bool = False) -> CastStamp:
    return CastStamp(view=view, key=CastKey(member=member, number=number), times=times, total=total)


class Reading:
    """A merge of three groups, and what came out of it. Each entry has one message."""

    def __init__(self) -> None:
        self.merge: CausalMerge[str] = CausalMerge(IDS)
        self.ends = dict.fromkeys(IDS, 0)

    def add(self, name: str, cast: CastStamp) -> list[str]:
        """What comes out then. The entry's name begins with its group's."""
        group = name[0]
        offset = self.ends[group]
        self.ends[group] = offset + 1
        self.merge.add(group, cast, name, offset=offset, end=offset + 1, size=100)
        return self.drain()

    def told(self, group: str, view: int, offset: int) -> list[str]:
        self.merge.told(group, Time(view), offset)
        return self.drain()

    def drain(self) -> list[str]:
        found = []
        while (item := self.merge.next()) is not None:
            found.append(item)
        return found


# ------------------------------------------------------------------------------------------------ rule by rule


def test_an_answer_waits_for_the_question_in_another_group():
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 1, {2: 1}))) == []
    assert reading.merge.waiting == {"a": 0, "b": 1, "c": 0}
    assert reading.add("a1", stamp(1, 2, 1)) == ["a1", "b1"]
    assert reading.merge.waiting == {"a": 0, "b": 0, "c": 0}


def test_what_is_carried_along_counts_like_the_rest():
    reading = Reading()
    cast = stamp(1, 0, 1)
    cast.carried.append(time_of("a", 1, {2: 1}))
    assert reading.add("b1", cast) == []
    assert reading.add("a1", stamp(1, 2, 1)) == ["a1", "b1"]


def test_groups_that_are_not_read_do_not_matter():
    merge: CausalMerge[str] = CausalMerge({"b": "b#2"})
    merge.add("b", stamp(1, 0, 1, time_of("a", 1, {2: 1})), "b1", offset=0, end=1, size=1)
    assert merge.next() == "b1"


def test_a_group_of_the_same_name_that_was_deleted_does_not_matter():
    reading = Reading()
    gone = GroupTime(group="a#0", view=7, members=[1], counts=[5])
    assert reading.add("b1", stamp(1, 0, 1, gone)) == ["b1"]


def test_what_its_own_group_has_before_it_is_not_waited_for():
    reading = Reading()
    assert reading.add("a1", stamp(1, 0, 3, time_of("a", 1, {1: 4}))) == ["a1"]


def test_a_later_view_covers_all_of_an_earlier_one():
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 2, {0: 9}))) == []
    assert reading.add("a1", stamp(2, 0, 8)) == ["a1"]
    assert reading.add("a2", stamp(3, 1, 1)) == ["b1", "a2"]


def test_a_bare_view_means_all_from_before_it():
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 2))) == []
    assert reading.add("a1", stamp(1, 0, 1)) == ["a1"]
    assert reading.add("a2", stamp(2, 0, 1)) == ["b1", "a2"]


def test_replicas_are_asked_about_a_view_in_which_nothing_was_said():
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 2))) == []
    assert reading.merge.asks() == ["a"]
    # The view began with offset 1, which has not come: what is before it must come out first.
    assert reading.told("a", 2, 1) == []
    assert reading.merge.asks() == []
    assert reading.add("a1", stamp(1, 0, 1)) == ["a1", "b1"]


def test_an_answer_that_does_not_reach_far_enough_is_asked_for_again():
    reading = Reading()
    reading.add("b1", stamp(1, 0, 1, time_of("a", 3)))
    assert reading.told("a", 2, 0) == []
    assert reading.merge.asks() == ["a"]
    assert reading.told("a", 3, 0) == ["b1"]


def test_a_cast_without_a_message_is_known_from_who_comes_after_it():
    """a1 is the second of its caster: the first was a repetition, and is not shown."""
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 1, {0: 1, 1: 1}))) == []
    assert reading.add("a1", stamp(1, 0, 2, time_of("a", 1, {1: 1}))) == ["b1", "a1"]


def test_a_cast_without_a_message_is_known_though_who_comes_after_it_waits():
    """Each of them waits for what the other one has before it in its log."""
    reading = Reading()
    assert reading.add("a1", stamp(1, 0, 2, time_of("b", 1, {0: 1}))) == []
    assert reading.add("b1", stamp(1, 0, 2, time_of("a", 1, {0: 1}))) == ["a1", "b1"]


def test_what_comes_behind_a_held_up_entry_keeps_its_place():
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 1, {0: 1}))) == []
    assert reading.add("b2", stamp(1, 1, 1)) == []
    assert reading.add("a1", stamp(1, 0, 1)) == ["a1", "b1", "b2"]


def contradiction(*, total: bool) -> list[tuple[str, CastStamp]]:
    """a1 comes after b2, and b1 after a2."""
    return [
        ("a1", stamp(1, 0, 1, time_of("b", 1, {0: 1}), total=total)),
        ("a2", stamp(1, 1, 1, total=total)),
        ("b1", stamp(1, 1, 1, time_of("a", 1, {1: 1}), total=total)),
        ("b2", stamp(1, 0, 1, total=total)),
    ]


def test_logs_that_contradict_each_other_still_come_out_in_causal_order():
    reading = Reading()
    *others, last = contradiction(total=False)
    assert [reading.add(name, cast) for name, cast in others] == [[], [], []]
    released = reading.add(*last)
    assert sorted(released) == ["a1", "a2", "b1", "b2"]
    assert released.index("b2") < released.index("a1")
    assert released.index("a2") < released.index("b1")


def test_what_passes_others_does_not_pass_what_it_comes_after():
    """As above, and b3 could go before b1 if it did not come after b2, which is held up by c2, behind c1."""
    reading = Reading()
    late = time_of("a", 1, {1: 1})
    for name, cast in [
        ("b1", stamp(1, 1, 1, late)),
        ("b2", stamp(1, 0, 1, time_of("c", 1, {1: 1}))),
        ("b3", stamp(1, 0, 2)),
        ("a1", stamp(1, 0, 1, time_of("b", 1, {0: 2}))),
        ("c1", stamp(1, 0, 1, late)),
        ("c2", stamp(1, 1, 1)),
    ]:
        assert reading.add(name, cast) == []
    released = reading.add("a2", stamp(1, 1, 1))
    assert len(released) == 7
    assert released.index("c2") < released.index("b2") < released.index("b3") < released.index("a1")


def test_nothing_passes_a_cast_with_a_total_order():
    reading = Reading()
    *others, last = contradiction(total=True)
    for name, cast in others:
        assert reading.add(name, cast) == []
    with pytest.raises(ResourceExhausted):
        reading.add(*last)


def test_while_something_can_still_come_the_order_of_a_log_is_kept():
    """b1 could be passed by b2; but c1 has only not come yet."""
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("c", 1, {0: 1}))) == []
    assert reading.add("b2", stamp(1, 1, 1)) == []
    assert reading.add("a1", stamp(1, 0, 1, time_of("b", 1, {1: 1}))) == []
    assert reading.add("c1", stamp(1, 0, 1)) == ["c1", "b1", "b2", "a1"]


@pytest.mark.parametrize(("bound", "most"), [("WAITING_ENTRIES_MAX", 2), ("WAITING_BYTES_MAX", 200)])
def test_what_waits_is_bounded(monkeypatch, bound, most):
    monkeypatch.setattr(causal_merge, bound, most)
    reading = Reading()
    for number in (1, 2):
        assert reading.merge.has_room("b")
        reading.add(f"b{number}", stamp(1, 0, number, time_of("a", 1, {0: 1})))
    assert not reading.merge.has_room("b")
    assert reading.merge.has_room("a")
    reading.add("a1", stamp(1, 0, 1))
    assert reading.merge.has_room("b")


def test_a_contradiction_that_is_longer_than_the_bounds_is_an_error(monkeypatch):
    monkeypatch.setattr(causal_merge, "WAITING_ENTRIES_MAX", 1)
    reading = Reading()
    casts = dict(contradiction(total=False))
    reading.add("a1", casts["a1"])
    with pytest.raises(ResourceExhausted):
        reading.add("b1", casts["b1"])


def test_what_lies_before_the_start_counts_as_released():
    reading = Reading()
    reading.merge.begin("a", 10)
    reading.merge.pass_over("a", stamp(4, 0, 7, time_of("a", 4, {1: 3})), end=11)
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 4, {0: 7, 1: 3}))) == ["b1"]
    assert reading.merge.offsets == {"a": 11, "b": 1, "c": 0}


def test_the_offsets_are_those_of_what_waits():
    reading = Reading()
    reading.add("b1", stamp(1, 1, 1))
    reading.add("b2", stamp(1, 0, 1, time_of("a", 1, {0: 1})))
    reading.add("b3", stamp(1, 0, 2))
    assert reading.merge.offsets == {"a": 0, "b": 1, "c": 0}


@pytest.mark.parametrize(
    "cast",
    [
        CastStamp(),
        stamp(1, 0, 1),
        stamp(2, 0, 0),
        stamp(2, 0, 1),
        stamp(2, 1, 3),
        CastStamp(view=2, key=CastKey(number=2), times=[GroupTime(group="b#2", view=1, members=[1])]),
    ],
    ids=["no stamp", "an earlier view", "no number", "the same again", "named by an earlier one", "not a time"],
)
def test_an_entry_that_cannot_be_is_an_error(cast):
    reading = Reading()
    reading.add("a1", stamp(2, 0, 1, time_of("a", 2, {1: 3})))
    with pytest.raises(Internal):
        reading.add("a2", cast)


# ------------------------------------------------------------------------------------------- random histories


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
                merge.pass_over(group, cast.stamp, end=cast.offset + 1)
            else:
                merge.add(group, cast.stamp, cast.name, offset=cast.offset, end=cast.offset + 1, size=1)
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


# ---------------------------------------------------------------------------------------- against a gateway


class CausalGateway(GatewayServicer):
    """Its groups are in a domain that the test chooses; entries have stamps."""

    def __init__(self, cluster: ClusterModel) -> None:
        super().__init__(cluster)
        self.domain = Domain(name="rooms", protocol="isis")
        self.view = 1
        self.counts: list[int] = []
        self.questions = 0

    def DescribeGroup(self, request, context):  # noqa: N802
        self.questions += 1
        group = self.cluster.groups[request.name]
        log = DescribeReplicaResponse(next_offset=group.next_offset, view=self.view, counts=self.counts)
        return DescribeGroupResponse(
            group=Group(name=request.name, id=group.id, domain=self.domain.name),
            replicas=[ReplicaStatus(node="away", error="does not answer"), ReplicaStatus(node="here", log=log)],
        )

    def ListDomains(self, request, context):  # noqa: N802
        return ListDomainsResponse(domains=[Domain(name="default"), self.domain])

    def append(self, name: str, cast: CastStamp) -> None:
        """One message. The entry's name begins with its group's, and is its payload."""
        cluster = self.cluster
        with cluster.changed:
            group = cluster.groups[name[0]]
            offset = group.next_offset
            cluster.sn += 1
            header = Header(
                destinations=[Destination(group=group.id)],
                ranges=[ProducerRange(producer=b"p", first_sequence=offset + 1, count=1)],
            )
            body = Batch(messages=[Message(payload=name.encode())]).SerializeToString()
            outcome = RangeOutcome(spans=[Span(first_sequence=offset + 1, count=1, first_offset=offset)])
            entry = LogEntry(
                order_key=order_key(cluster.sn, envelope_id(1, cluster.sn)),
                envelope=Envelope(header=header, body=body),
                first_offset=offset,
                outcomes=[outcome],
                stamp=cast,
            )
            group.entries.append(entry)
            group.next_offset = offset + 1
            cluster.changed.notify_all()


@pytest.fixture
def gateway():
    return CausalGateway(ClusterModel("a", "b"))


@pytest.fixture
def address(gateway):
    server = grpc.server(ThreadPoolExecutor(max_workers=16))
    add_GatewayServiceServicer_to_server(gateway, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(0).wait()


def run(main) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await main()

    asyncio.run(bounded())


async def take(deliveries, count: int) -> list[str]:
    return [(await anext(deliveries)).payload.decode() for _ in range(count)]


async def is_silent(deliveries) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.3):
            await anext(deliveries)
            return False
    return True


def test_a_paused_group_holds_up_what_comes_after_its_messages(gateway, address):
    gateway.append("a1", stamp(1, 0, 1))
    gateway.append("b1", stamp(1, 0, 1))
    gateway.append("b2", stamp(1, 0, 2, time_of("a", 1, {0: 1})))

    async def main():
        async with ordercast.connect(address) as oc, oc.subscribe_causal(["b", "a"]) as deliveries:
            deliveries.pause("a")
            assert await take(deliveries, 1) == ["b1"]
            assert await is_silent(deliveries)
            assert deliveries.waiting == {"a": 0, "b": 1}
            assert deliveries.offsets == {"a": 0, "b": 1}
            deliveries.resume("a")
            assert await take(deliveries, 2) == ["a1", "b2"]
            assert deliveries.offsets == {"a": 1, "b": 2}
            with pytest.raises(InvalidArgument):
                deliveries.pause("c")

    run(main)


def test_what_was_read_is_seen_and_there_is_no_cursor_to_acknowledge_to(gateway, address):
    gateway.append("a1", stamp(1, 0, 1))

    async def main():
        async with ordercast.connect(address) as oc, oc.subscribe_causal(["a", "b"]) as deliveries:
            assert oc.session_token == b""
            delivery = await anext(deliveries)
            assert oc.session_token != b""
            with pytest.raises(FailedPrecondition):
                await delivery.ack()

    run(main)


def test_the_replicas_are_asked_when_a_log_shows_nothing_of_a_view(gateway, address, monkeypatch):
    monkeypatch.setattr(aio_causal, "ASK_S", 0.01)
    gateway.append("a1", stamp(1, 0, 1))
    gateway.append("b1", stamp(1, 0, 1, time_of("a", 2)))

    async def main():
        async with ordercast.connect(address) as oc, oc.subscribe_causal(["a", "b"]) as deliveries:
            assert await take(deliveries, 1) == ["a1"]
            assert await is_silent(deliveries)
            before = gateway.questions
            gateway.view = 2
            assert await take(deliveries, 1) == ["b1"]
            assert gateway.questions > before

    run(main)


def test_the_replicas_are_asked_for_entries_that_show_no_message(gateway, address, monkeypatch):
    """A producer was opened, or a message repeated: that counts, and no reader is shown it."""
    monkeypatch.setattr(aio_causal, "ASK_S", 0.01)
    gateway.append("a1", stamp(1, 0, 1))
    gateway.append("b1", stamp(1, 0, 1, time_of("a", 1, {0: 2, 1: 1})))

    async def main():
        async with ordercast.connect(address) as oc, oc.subscribe_causal(["a", "b"]) as deliveries:
            assert await take(deliveries, 1) == ["a1"]
            for counts in ([], [1, 1]):
                gateway.counts = counts
                assert await is_silent(deliveries)
            gateway.counts = [2, 1]
            assert await take(deliveries, 1) == ["b1"]

    run(main)


def test_from_the_latest_on_nothing_old_is_waited_for(gateway, address):
    for number in range(1, 101):
        gateway.append(f"a{number}", stamp(1, 0, number))

    async def main():
        async with ordercast.connect(address) as oc, oc.subscribe_causal(["a", "b"], "latest") as deliveries:
            gateway.append("b1", stamp(1, 0, 1, time_of("a", 1, {0: 100})))
            assert await take(deliveries, 1) == ["b1"]
            assert deliveries.offsets == {"a": 100, "b": 1}

    run(main)


def test_reading_goes_on_where_it_was(gateway, address):
    for number in range(1, 6):
        gateway.append(f"a{number}", stamp(1, 0, number))

    async def main():
        async with ordercast.connect(address) as oc:
            async with oc.subscribe_causal(["a", "b"]) as deliveries:
                assert await take(deliveries, 2) == ["a1", "a2"]
                offsets = deliveries.offsets
            async with oc.subscribe_causal(["a", "b"], offsets) as deliveries:
                assert await take(deliveries, 3) == ["a3", "a4", "a5"]

    run(main)


def test_a_broken_stream_goes_on_without_a_gap(gateway, address):
    gateway.append("a1", stamp(1, 0, 1))

    async def main():
        async with ordercast.connect(address) as oc, oc.subscribe_causal(["a", "b"]) as deliveries:
            assert await take(deliveries, 1) == ["a1"]
            gateway.cluster.break_streams()
            gateway.append("b1", stamp(1, 0, 1, time_of("a", 1, {0: 2})))
            gateway.append("a2", stamp(1, 0, 2))
            assert await take(deliveries, 2) == ["a2", "b1"]

    run(main)


@pytest.mark.parametrize(
    ("domain", "word"),
    [
        (Domain(name="rooms", protocol="scalatom"), "order key"),
        (Domain(name="rooms", protocol="isis", settings={"causality": "conservative"}), "causality=timestamps"),
        (Domain(name="rooms", protocol="isis", settings={"causality": "epochs"}), "causality=timestamps"),
    ],
    ids=["another protocol", "conservative", "epochs"],
)
def test_a_domain_whose_messages_do_not_say_what_they_come_after_is_refused(gateway, address, domain, word):
    gateway.domain = domain

    async def main():
        async with ordercast.connect(address) as oc:
            with pytest.raises(FailedPrecondition, match=word):
                async with oc.subscribe_causal(["a", "b"]):
                    pass

    run(main)


@pytest.mark.parametrize("start", [3, {"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": None}, "sometime"])
def test_a_start_that_is_not_one_for_each_group_is_refused(start):
    connection = ordercast.connect("127.0.0.1:1")
    with pytest.raises(InvalidArgument):
        connection.subscribe_causal(["a", "b"], start)
