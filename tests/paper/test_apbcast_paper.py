"""The README's map from the paper to the code, and the rules of registry, acknowledgements and broadcasters one
by one.
"""

import re
from importlib import import_module
from pathlib import Path

import pytest

import ordercast.protocols.apbcast
from ordercast.core.machine import ChannelReset, Receive, Send, Start, TimerFired
from ordercast.protocols.apbcast.acknowledged import Acknowledged, of_majority
from ordercast.protocols.apbcast.broadcaster import Broadcaster
from ordercast.protocols.apbcast.events import NotTaken, Publish, Quit, Receipted
from ordercast.protocols.apbcast.registry import Known, Registry, Unfit
from ordercast.protocols.apbcast.settings import Settings
from ordercast.v1.apbcast_pb2 import (
    BroadcasterStream,
    Entries,
    Held,
    JoinStreams,
    LeaveStreams,
    Publication,
    Receipt,
    StreamEnd,
    Streams,
    Want,
)

FOLDER = Path(ordercast.protocols.apbcast.__file__).parent
MODULES = {path.stem: import_module(f"ordercast.protocols.apbcast.{path.stem}") for path in FOLDER.glob("*.py")}


def test_the_map_in_the_readme_names_what_exists():
    rows = [line for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| ")]
    names = [name for row in rows for name in re.findall(r"`([A-Za-z_.]+)`", row.split("|")[3])]
    there = {name for module in MODULES.values() for name in dir(module)}
    assert len(names) > 30
    for name in names:
        if name.endswith(".py"):
            assert (FOLDER / name).exists(), name
            continue
        first, _, attribute = name.partition(".")
        found = next((getattr(m, first) for m in MODULES.values() if hasattr(m, first)), None)
        assert found is not None or first in Settings.__dataclass_fields__, name
        assert not attribute or hasattr(found, attribute), name
    assert there


# --------------------------------------------------------------------------------------------- acknowledgements


def test_r2_a_majority_is_counted_in_one_configuration():
    acknowledged = Acknowledged()
    acknowledged.configure("g", 1, ["a", "b", "c"])
    acknowledged.configure("g", 2, ["b", "c", "d"])
    acknowledged.add("g", 1, "a", 5)
    acknowledged.add("g", 2, "b", 5)
    assert acknowledged.by_group("g") == 0
    acknowledged.add("g", 1, "c", 4)
    assert acknowledged.by_group("g") == 4, "an old one counts, too: it was handed over"
    acknowledged.add("g", 3, "d", 9)
    assert acknowledged.by_group("g") == 4, "nobody has said who is in that one"


@pytest.mark.parametrize(
    ("numbers", "expected"), [({}, 0), ({"a": 3}, 0), ({"a": 3, "b": 1}, 1), ({"a": 3, "b": 9}, 3)]
)
def test_what_a_majority_has(numbers, expected):
    assert of_majority(["a", "b", "c"], numbers) == expected


# ----------------------------------------------------------------------------------------------------- registry


def with_broadcasters(*names):
    registry = Registry()
    registry.define("g", ["r0", "r1", "r2"])
    registry.start("g", registry.state.revision)
    registry.append([BroadcasterStream(process=name, home="g", rate=1000) for name in names], [])
    return registry


def test_r1_a_defined_configuration_may_be_replaced_and_then_does_not_start():
    registry = with_broadcasters("b0")
    registry.define("g", ["r0", "r1", "r3"])
    replaced = registry.state.revision
    registry.define("g", ["r0", "r1", "r4"])
    with pytest.raises(Unfit, match="not the one that is to start"):
        registry.start("g", replaced)
    registry.start("g", registry.state.revision)
    assert list(registry.group("g").started.members) == ["r0", "r1", "r4"]


def test_r6_a_removal_begins_again_when_the_home_has_changed():
    registry = with_broadcasters("b0", "b1")
    registry.intend(1)
    before = registry.removal(1).configuration
    registry.check_end(1, before)
    registry.define("g", ["r3"])
    with pytest.raises(Unfit, match="begin the removal again"):
        registry.check_end(1, before)
    registry.start("g", registry.group("g").defined.number)
    with pytest.raises(Unfit, match="begin the removal again"):
        registry.check_end(1, before)
    registry.intend(1)
    registry.check_end(1, registry.removal(1).configuration)


def test_r11_a_home_is_not_deleted_nor_the_last_group():
    registry = with_broadcasters("b0")
    with pytest.raises(Unfit, match="is a home"):
        registry.delete("g")
    registry.append([], [StreamEnd(stream=1, length=0, keeper="g")])
    with pytest.raises(Unfit, match="no other root group"):
        registry.delete("g")


def test_a_root_is_in_one_group():
    registry = with_broadcasters("b0")
    with pytest.raises(Unfit, match="root of one group"):
        registry.define("h", ["r2"])


def test_r13_a_view_has_any_number_of_joinings_and_ends():
    registry = with_broadcasters("b0", "b1")
    registry.append(
        [BroadcasterStream(process="b2", home="g", rate=500)], [StreamEnd(stream=1), StreamEnd(stream=2)]
    )
    assert [(s.stream, s.process) for s in registry.last_view.streams] == [(3, "b2")]
    with pytest.raises(Unfit, match="nobody joins"):
        registry.append([BroadcasterStream(process="b3", home="nowhere", rate=500)], [])


def test_r19_views_are_forgotten_from_the_oldest_and_the_last_one_stays():
    registry = with_broadcasters("b0")
    registry.append([BroadcasterStream(process="b1", home="g", rate=1000)], [])
    registry.forget_before(9)
    assert [view.number for view in registry.state.views] == [1, 2]
    registry.forget_before(2)
    assert [view.number for view in registry.state.views] == [2]


def test_e2_a_view_carries_the_biases_of_all():
    registry = with_broadcasters("b0")
    registry.append([BroadcasterStream(process="b1", home="g", rate=10_000)], [])
    assert [s.bias_us for s in registry.last_view.streams] == [230259, 0]


# ------------------------------------------------------------------------------------------------- broadcasters


class Speaker:
    """A broadcaster with its roots and the registrar, by hand."""

    def __init__(self, **settings):
        self.machine = Broadcaster("b0", Settings(**settings), "g", 1000)
        self.registry = with_broadcasters("b9")
        self.tell(Start(0.0, 0.0, 7, ()))
        for peer in ("m", "r0", "r1", "r2"):
            self.tell(ChannelReset(0.0, 0.0, peer, 1))
        self.streams()
        (join,) = self.sent(self.tick(), JoinStreams)
        stream = BroadcasterStream(process="b0", incarnation=7, attempt=join.attempt, home="g", rate=1000)
        self.registry.append([stream], [])
        self.streams()

    def tell(self, event):
        return self.machine.step(event)

    def hear(self, source, message):
        return self.tell(Receive(0.0, 0.0, source, 1, message))

    def streams(self):
        copy = Streams()
        copy.CopyFrom(self.registry.state)
        return self.hear("m", copy)

    def tick(self, now=0.0):
        return self.tell(TimerFired(now, now, "tick", 0))

    def publish(self, sequence, first_open=1):
        cast = Publication(producer=b"p", sequence=sequence, groups=["red"])
        return self.tell(Publish(0.0, 0.0, cast, first_open))

    def held(self, root, synced, configuration=None, **more):
        number = self.registry.group("g").started.number if configuration is None else configuration
        return self.hear(
            root, Held(stream=2, length=synced, synced=synced, group="g", configuration=number, **more)
        )

    @staticmethod
    def sent(effects, kind):
        return [
            effect.message for effect in effects if isinstance(effect, Send) and isinstance(effect.message, kind)
        ]


def test_e4_what_a_majority_of_the_home_has_is_announced():
    speaker = Speaker()
    entries = speaker.sent(speaker.publish(1), Entries)
    assert [(e.first, len(e.entries), e.announced) for e in entries] == [(0, 1, 0)] * 3
    assert speaker.sent(speaker.held("r0", 1), Entries) == []
    announced = speaker.sent(speaker.held("r1", 1), Entries)
    assert [(e.first, len(e.entries), e.announced) for e in announced] == [(1, 0, 1)] * 3


def test_e4_a_root_that_has_sealed_acknowledges_nothing():
    speaker = Speaker()
    speaker.publish(1)
    speaker.held("r0", 1)
    assert speaker.sent(speaker.held("r1", 1, configuration=0), Entries) == []


def test_e3_a_null_is_said_at_once_and_only_once():
    speaker = Speaker()
    said = speaker.sent(speaker.hear("r0", Want(stream=2, timestamp=500)), Entries)
    assert [(e.entries[0].timestamp, e.entries[0].WhichOneof("what")) for e in said] == [(500, None)] * 3
    assert speaker.sent(speaker.hear("r1", Want(stream=2, timestamp=500)), Entries) == []
    later = speaker.sent(speaker.publish(1), Entries)
    assert later[0].entries[0].timestamp > 500, "timestamps rise strictly"


def test_e4_a_mark_for_each_view():
    speaker = Speaker()
    speaker.registry.append([BroadcasterStream(process="b1", home="g", rate=1000)], [])
    speaker.registry.append([BroadcasterStream(process="b2", home="g", rate=1000)], [])
    said = speaker.sent(speaker.streams(), Entries)
    assert [entry.mark for entry in said[0].entries] == [3, 4]


def test_a_window_of_messages_and_then_a_queue_and_then_a_refusal_that_nothing_overtakes():
    speaker = Speaker(window=2)
    for sequence in range(1, 5):
        assert not [e for e in speaker.publish(sequence) if isinstance(e, NotTaken)]
    assert [e.reason for e in speaker.publish(5) if isinstance(e, NotTaken)] == [
        "too many messages wait for this broadcaster's window"
    ]
    for index in (0, 1):
        speaker.hear("r0", Receipt(stream=2, index=index, mseq=index))
    assert [e.reason for e in speaker.publish(6) if isinstance(e, NotTaken)] == [
        "an earlier message of this producer was refused"
    ]
    assert not [e for e in speaker.publish(5) if isinstance(e, NotTaken)]


def test_what_has_no_receipt_is_said_again_in_the_next_stream():
    speaker = Speaker()
    speaker.publish(1)
    speaker.publish(2)
    (receipt,) = [e for e in speaker.hear("r0", Receipt(stream=2, index=0, mseq=4)) if isinstance(e, Receipted)]
    assert (receipt.mseq, receipt.source, receipt.home) == (4, "r0", "g")
    speaker.registry.append([], [StreamEnd(stream=2, length=1, keeper="g")])
    speaker.streams()
    (join,) = speaker.sent(speaker.tick(), JoinStreams)
    assert join.attempt == 1
    assert [cast.sequence for cast in speaker.machine.queue] == [2]


def test_r12_who_leaves_ends_the_stream_at_what_a_majority_has():
    speaker = Speaker()
    speaker.publish(1)
    speaker.held("r0", 1)
    speaker.held("r1", 1)
    speaker.tell(Quit(0.0, 0.0))
    assert speaker.sent(speaker.tick(), LeaveStreams) == [], "a message has no receipt yet"
    speaker.hear("r0", Receipt(stream=2, index=0, mseq=0))
    (leave,) = speaker.sent(speaker.tick(), LeaveStreams)
    assert (leave.length, leave.keeper) == (1, "g")
    assert speaker.sent(speaker.hear("r0", Want(stream=2, timestamp=900)), Entries) == []


def test_known_is_what_was_told_by_number_and_name():
    registry = with_broadcasters("b0", "b1")
    registry.append([], [StreamEnd(stream=1, length=3, keeper="g")])
    known = Known(registry.state)
    assert (known.first_view, known.last_view, known.ends[1].length) == (1, 2, 3)
    assert [stream.process for stream in known.current()] == ["b1"]
    assert known.roots() == ("r0", "r1", "r2")
    assert known.group_of("r1").group == "g"
    assert known.group_of("b0") is None
