"""A replica with a log, and a learner that copies it."""

import zlib
from typing import Any

from ordercast.core.machine import Effect
from ordercast.v1.sequencer_pb2 import FetchLog, LogChunk, Snapshot, SnapshotAsk, SnapshotPart
from tests.unit.driving import CONFIGURATION, edited, envelope_of, range_of, sent, sent_when_durable, talk
from tests.unit.scalatom_host import SILENCE_S, VIEW, Host

LEARNING = edited(VIEW, "a", learners="n6")


def source(count: int = 5, begins: int = 0, name: str = "n2", **settings: Any) -> Host:
    """Has delivered so many envelopes of one producer, and kept the log from there on."""
    host = Host(name, **settings)
    for counter in range(count):
        envelope = envelope_of(counter, "a", done=counter, ranges=[range_of(b"p", 1 + counter, 1)])
        host.order(envelope, 10 + counter)
    host.logs["a"].truncate(begins)
    host.change(LEARNING)
    return host


def learner(**settings: Any) -> Host:
    return Host("n6", view=LEARNING, **settings)


def fetched(giver: Host, taker: Host) -> list[Effect]:
    """What the taker does with the next piece of the giver's log."""
    position = taker.replica().position if taker.replica().copied is None else taker.replica().copied
    fetch = FetchLog(group="a", configuration=taker.groups["a"].configuration, position=position)
    (chunk,) = sent(giver.hear(taker.name, fetch), LogChunk)
    return taker.receive(giver.name, chunk)


def copy(giver: Host, taker: Host) -> None:
    """Question and answer, until nothing more is asked. In their turn, those who are not here are asked too."""
    for _ in range(4):
        talk({giver.name: giver, taker.name: taker}, taker.name, taker.tick(SILENCE_S))


def part_of(snapshot: Snapshot, **fields: Any) -> SnapshotPart:
    data = snapshot.SerializeToString()
    defaults = {"group": "a", "configuration": CONFIGURATION, "token": 7, "parts": 1, "data": data}
    return SnapshotPart(**{**defaults, "checksum": zlib.crc32(data), **fields})


def copier(count: int = 5, begins: int = 2) -> tuple[Host, Host]:
    """A learner that has what is left of the log and has asked for the state; and the one that it asked."""
    giver, host = source(count, begins=begins), learner()
    fetched(giver, host)
    fetched(giver, host)
    assert host.replica().copied == count
    return giver, host


def asked(giver: Host, **fields: Any) -> SnapshotPart:
    effects = giver.receive("n1", SnapshotAsk(group="a", configuration=CONFIGURATION, **fields))
    assert sent(effects, SnapshotPart) == [], "behind the deliveries that are on their way to the disk"
    ((_, part),) = sent_when_durable(effects, SnapshotPart)
    return part
