"""A root by itself: what it stores, acknowledges, asks for, hands over, and begins again with."""

import pytest

from ordercast.core.machine import (
    ChannelReset,
    Deliver,
    Hand,
    LogRead,
    Persist,
    ReadLog,
    Receive,
    Send,
    Start,
    TimerFired,
)
from ordercast.protocols.apbcast.events import LOG, Written
from ordercast.protocols.apbcast.registry import Registry
from ordercast.protocols.apbcast.root import Root
from ordercast.protocols.apbcast.settings import Settings
from ordercast.v1.apbcast_pb2 import (
    AskSnapshot,
    BroadcasterStream,
    CopyLog,
    Entries,
    Fetch,
    Held,
    MergeSnapshot,
    MergeState,
    Publication,
    Ready,
    Receipt,
    RootHandOver,
    SealConfiguration,
    StreamEnd,
    StreamEntry,
    Streams,
    StreamSealed,
    Want,
)

ROOTS = ("r0", "r1", "r2")


def said(timestamp, sequence, producer=b"p"):
    cast = Publication(producer=producer, sequence=sequence, groups=["red"])
    return StreamEntry(timestamp=timestamp, cast=cast)


class Host:
    """A root whose disk is synced when the test says so."""

    def __init__(self, name="r0", members=ROOTS, broadcasters=("b0", "b1")):
        self.name = name
        self.registry = Registry()
        self.registry.define("g", members)
        self.registry.start("g", 1)
        streams = [BroadcasterStream(process=b, incarnation=1, home="g", rate=1000) for b in broadcasters]
        self.registry.append(streams, [])
        self.records = {}
        self.start()

    def start(self):
        self.root = Root(self.name, Settings())
        self.waiting = []
        self.tell(Start(0.0, 0.0, 1, list(self.records.items())))
        for peer in ("m", "b0", "b1", *ROOTS, "r3"):
            if peer != self.name:
                self.tell(ChannelReset(0.0, 0.0, peer, 1))

    def tell(self, event):
        effects = self.root.step(event)
        self.waiting += [effect for effect in effects if isinstance(effect, Persist)]
        self.root.check_invariants()
        return effects

    def hear(self, source, message):
        return self.tell(Receive(0.0, 0.0, source, 1, message))

    def streams(self):
        copy = Streams()
        copy.CopyFrom(self.registry.state)
        return self.hear("m", copy)

    def tick(self, now=0.0):
        return self.tell(TimerFired(now, now, "tick", 0))

    def sync(self):
        """All that was written is durable; what comes of it."""
        found, waiting = [], self.waiting
        self.waiting = []
        for persist in waiting:
            for key, value in persist.records:
                self.records.pop(key, None)
                if value is not None:
                    self.records[key] = value
            (hand,) = persist.then
            assert isinstance(hand, Hand)
            assert isinstance(hand.event, Written)
            found += self.tell(hand.event)
        return found


def sent(effects, kind, to=None):
    chosen = [e for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]
    return [effect.message for effect in chosen if to is None or to in effect.to]


@pytest.fixture
def host():
    found = Host()
    found.streams()
    return found


def test_an_acknowledgement_speaks_of_the_disk(host):
    assert sent(host.hear("b0", Entries(stream=1, entries=[said(10, 1)])), Held) == []
    (held,) = sent(host.sync(), Held, "b0")
    assert (held.synced, held.length, held.group, held.configuration) == (1, 1, "g", 1)


def test_a_message_is_merged_when_it_is_announced_and_its_turn_has_come(host):
    effects = host.hear("b0", Entries(stream=1, entries=[said(10, 1), said(20, 2)]))
    assert [(w.stream, w.timestamp) for w in sent(effects, Want)] == [(2, 11)]
    effects = host.hear("b0", Entries(stream=1, first=2, announced=2))
    assert [e.position for e in effects if isinstance(e, Deliver)] == [0]
    assert [(r.index, r.mseq) for r in sent(effects, Receipt, "b0")] == [(0, 0)]
    effects = host.hear("b1", Entries(stream=2, entries=[StreamEntry(timestamp=11)]))
    assert [e.position for e in effects if isinstance(e, Deliver)] == [1]


def test_a_gap_is_asked_for_from_another_root(host):
    effects = host.hear("b0", Entries(stream=1, first=3, entries=[said(40, 4)], announced=3))
    assert [(f.stream, f.first) for f in sent(effects, Fetch)] == [(1, 0)]


def test_who_asks_for_what_is_merged_and_forgotten_gets_a_snapshot(host):
    host.hear("b0", Entries(stream=1, entries=[said(10, 1)], announced=1))
    (entries,) = sent(host.hear("r1", Fetch(stream=1)), Entries, "r1")
    assert (len(entries.entries), entries.fetched) == (1, True)
    host.sync()
    effects = host.hear("r1", Fetch(stream=1))
    (read,) = [e for e in effects if isinstance(e, ReadLog)]
    effects = host.tell(LogRead(0.0, 0.0, LOG, read.position, (), 0, read.tag))
    (snapshot,) = sent(effects, MergeSnapshot, "r1")
    assert (snapshot.state.mseq, snapshot.state.positions[0].index) == (1, 1)


def test_a_snapshot_that_is_not_ahead_is_left_alone(host):
    host.hear("b0", Entries(stream=1, entries=[said(10, 1)], announced=1))
    state = host.root.merge.state()
    host.hear("b0", Entries(stream=1, first=1, entries=[StreamEntry(timestamp=20)]))
    before = host.root.merge.state()
    assert sent(host.hear("r1", MergeSnapshot(state=state)), CopyLog) == []
    assert host.root.merge.state() == before


def test_a_restart_goes_on_from_the_disk(host):
    host.hear("b0", Entries(stream=1, entries=[said(10, 1), said(20, 2)], announced=1))
    host.sync()
    host.sync()  # and what is merged is forgotten
    host.hear("b0", Entries(stream=1, first=2, entries=[said(30, 3)]))  # never synced
    host.start()
    host.streams()
    stream = host.root.streams[1]
    assert (stream.base, stream.length, host.root.merge.mseq) == (1, 2, 1)


def test_r3_who_has_sealed_acknowledges_nothing_and_says_so_only_from_its_disk(host):
    host.hear("b0", Entries(stream=1, entries=[said(10, 1)]))
    host.sync()
    question = SealConfiguration(group="g", configuration=9)
    assert sent(host.hear("r3", question), RootHandOver) == [], "the seal is not on the disk yet"
    host.sync()
    (hand_over,) = sent(host.hear("r3", question), RootHandOver, "r3")
    assert [(position.stream, position.index) for position in hand_over.lengths] == [(1, 1), (2, 0)]
    host.hear("b0", Entries(stream=1, first=1, entries=[said(20, 2)]))
    assert [held.configuration for held in sent(host.sync(), Held, "b0")] == [0]


def test_r3_a_new_member_is_ready_when_all_that_a_majority_handed_over_is_on_its_disk():
    host = Host("r3")
    host.registry.define("g", ["r0", "r1", "r3"])
    number = host.registry.state.revision
    asked = host.streams()
    assert len(sent(asked, SealConfiguration, "r0")) == len(sent(asked, SealConfiguration, "r2")) == 1
    for giver, length in (("r0", 1), ("r2", 0)):
        hand_over = RootHandOver(group="g", configuration=1, next=number)
        hand_over.lengths.add(stream=1, index=length)
        host.hear(giver, hand_over)
    assert sent(host.tick(), Ready) == []
    host.hear("r0", Entries(stream=1, entries=[said(10, 1)], fetched=True))
    assert sent(host.tick(), Ready) == [], "not on the disk yet"
    host.sync()
    assert [ready.configuration for ready in sent(host.tick(), Ready, "m")] == [number]


def test_r3_one_hand_over_is_no_majority():
    host = Host("r3")
    host.registry.define("g", ["r0", "r1", "r3"])
    host.streams()
    host.hear("r0", RootHandOver(group="g", configuration=1, next=host.registry.state.revision))
    assert sent(host.tick(), Ready) == []


def test_r6_a_seal_is_told_from_the_disk_and_nothing_more_is_taken(host):
    host.hear("b0", Entries(stream=1, entries=[said(10, 1)]))
    host.sync()
    host.registry.intend(1)
    assert sent(host.streams(), StreamSealed) == []
    (sealed,) = sent(host.sync(), StreamSealed, "m")
    assert (sealed.stream, sealed.configuration, sealed.length) == (1, 1, 1)
    host.hear("b0", Entries(stream=1, first=1, entries=[said(20, 2)]))
    assert host.root.streams[1].length == 1
    host.hear("r1", Entries(stream=1, first=1, entries=[said(20, 2)], fetched=True))
    assert host.root.streams[1].length == 2, "a fill"


def test_r10_a_group_that_is_created_takes_a_snapshot_first():
    host = Host("r3")
    host.registry.define("h", ["r3"])
    host.streams()
    effects = host.tick()
    assert sent(effects, Ready) == []
    assert len(sent(effects, AskSnapshot)) == 1


def test_roots_that_are_not_home_give_no_receipts():
    host = Host("r3")
    host.registry.define("h", ["r3"])
    host.registry.start("h", host.registry.state.revision)
    host.streams()
    effects = host.hear("b0", Entries(stream=1, entries=[said(10, 1)], announced=1))
    assert [e.position for e in effects if isinstance(e, Deliver)] == [0]
    assert sent(effects, Receipt) == []


def test_r8_a_stream_that_ended_before_the_snapshot_is_not_waited_for():
    """Whoever hands over still speaks of it, and nobody has its entries."""
    host = Host("r3")
    host.registry.append([], [StreamEnd(stream=1, length=2, keeper="g")])
    host.registry.define("g", ["r0", "r1", "r3"])
    number = host.registry.state.revision
    host.streams()
    state = MergeState(view=2, mseq=0)
    state.positions.add(stream=2)
    for giver in ("r0", "r1"):
        hand_over = RootHandOver(group="g", configuration=1, next=number, state=state)
        hand_over.lengths.add(stream=1, index=2)
        host.hear(giver, hand_over)
    host.hear("r0", MergeSnapshot(state=state))
    host.sync()
    assert [ready.configuration for ready in sent(host.tick(), Ready, "m")] == [number]


def test_what_a_restart_finds_behind_nulls_that_were_merged_leaves_no_gap_on_the_disk():
    host = Host(broadcasters=("b0",))
    host.streams()
    host.hear("b0", Entries(stream=1, entries=[said(10, 1), StreamEntry(timestamp=11)], announced=1))
    host.sync()  # the first entry, and a merge that is past the null; nothing is forgotten yet
    host.start()
    host.streams()
    host.hear("b0", Entries(stream=1, first=2, entries=[said(30, 2)]))
    host.sync()
    host.start()
    host.streams()
    assert (host.root.streams[1].base, host.root.streams[1].length) == (2, 3)
