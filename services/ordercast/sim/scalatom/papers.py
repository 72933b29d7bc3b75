"""[SCALATOM 5.2, Table 2] Communication steps, messages and message sizes, without failures.

The paper's setting: one group of d processes that are also the acceptors, the sender among them, and the decision
relayed. Its reliable multicast relays every message eagerly; ours relays on silence. Both are run. What goes to
and from the client, and the reports that make a receipt, are ours and not the paper's: they are not counted.

Beside that, a multicast as a cluster runs it, without failures: gossip is early, and the stamps imply the number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ordercast.core.machine import Deliver
from ordercast.core.packets import FIELD_OF
from ordercast.protocols.scalatom.settings import Settings
from ordercast.sim.paper import Paper, PaperRow, Table
from ordercast.sim.scalatom.stage import Stage

DELAY_S = 0.001
#: Message kinds of the protocol proper.
COUNTED = ("disseminate", "rec_ts", "prepare", "promise", "accept", "accepted", "decide", "gossip")


@dataclass(slots=True)
class Count:
    """What one multicast cost."""

    messages: dict[str, int] = field(default_factory=dict)
    #: Gossip that had to be sent for its own sake: the coordinator's rides on its decision.
    lone_gossip: int = 0
    bytes_max: int = 0
    bytes_all: int = 0
    steps: int = 0

    @property
    def without_gossip(self) -> int:
        return sum(count for kind, count in self.messages.items() if kind != "gossip")


class Observer:
    """Counts what a stage sends, and when envelopes are submitted and delivered."""

    def __init__(self, stage: Stage, coordinator: str) -> None:
        self.stage = stage
        self.coordinator = coordinator
        self.count = Count()
        self.submitted: dict[bytes, float] = {}
        self.delivered: dict[bytes, float] = {}
        world = stage.world
        self._on_send, self._on_deliver = world.on_send, world.on_deliver
        world.on_send, world.on_deliver = self.on_send, self.on_deliver

    def on_send(self, source: str, to: Sequence[str], message: Any, size: int) -> None:
        self._on_send(source, to, message, size)
        kind = FIELD_OF[type(message)]
        if kind == "disseminate":
            self.submitted.setdefault(message.envelope.header.id, self.stage.world.now)
        if kind not in COUNTED:
            return
        count, others = self.count, sum(1 for process in to if process != source)
        count.messages[kind] = count.messages.get(kind, 0) + others
        if kind == "gossip" and source != self.coordinator:
            count.lone_gossip += others
        count.bytes_all += size * others
        if kind != "disseminate":
            count.bytes_max = max(count.bytes_max, size)

    def on_deliver(self, process: str, effect: Deliver) -> None:
        self._on_deliver(process, effect)
        self.delivered[effect.entry.envelope.header.id] = self.stage.world.now

    def steps(self, id_: bytes) -> int:
        """Until the last replica has delivered."""
        return round((self.delivered[id_] - self.submitted[id_]) / DELAY_S)


#: Nothing happens only because time passes.
PATIENT = Settings(gossip_s=1e6, silence_s=1e6)


def published(*, eager: bool) -> Settings:
    return replace(PATIENT, relay_eagerly=eager, gossip_early=False, stamps_wait_s=0.0)


def paper_stage(d: int, settings: Settings, *, groups: int = 1, clients: int = 1) -> tuple[Stage, Observer]:
    """One group of d, its replicas the acceptors, n01 sender and coordinator; and groups that it is nothing to."""
    names = tuple(f"n{i:02}" for i in range(1, d + 1))
    members = {"a": names}
    members |= {f"g{i}": names[:1] for i in range(1, groups)}
    stage = Stage(
        members,
        acceptors=None,
        gateways=names[:1],
        clients=clients,
        settings=settings,
    )
    return stage, Observer(stage, names[0])


def one_multicast(d: int, *, eager: bool, groups: int = 1) -> Count:
    return _one_multicast(d, published(eager=eager), groups)


def one_multicast_implied(d: int) -> Count:
    """As a cluster runs it: its number is what everyone has stamped."""
    return _one_multicast(d, PATIENT, groups=1)


def _one_multicast(d: int, settings: Settings, groups: int) -> Count:
    stage, _ = paper_stage(d, settings, groups=groups)
    # A first message, not counted, after which everyone has been heard of.
    stage.publish("c1", "a")
    stage.run(0.05)
    observer = Observer(stage, "n01")
    stage.publish("c1", "a")
    stage.run(0.05)
    stage.finish()
    (id_,) = observer.delivered
    observer.count.steps = observer.steps(id_)
    return observer.count


def steps_with_fresh_messages(d: int) -> int:
    """A stream of messages by different senders, one per step: their stamps carry the gossip."""
    senders = 16
    stage, observer = paper_stage(d, published(eager=False), clients=senders)
    for index in range(senders):
        stage.publish(f"c{index + 1}", "a")
        stage.run(DELAY_S)
    stage.run(0.05)
    stage.finish()
    middle = sorted(observer.delivered)[4:-6]
    return max(observer.steps(id_) for id_ in middle)


def implied_rows(ds: Sequence[int] = (3, 5)) -> list[PaperRow]:
    """What is published is with consensus on the number, and eager relay."""
    result = []
    for d in ds:
        count, with_ = one_multicast_implied(d), f"d = {d}, stamps imply the number"
        formula = 3 * (d - 1) ** 2 + 4 * (d - 1)
        result.append(PaperRow(f"communication steps, {with_} (published: consensus)", 6, count.steps))
        result.append(PaperRow(f"messages, {with_} (published: consensus)", formula, count.without_gossip))
        result.append(
            PaperRow(f"gossip messages, {with_} (published: consensus)", (d - 1) ** 2, count.lone_gossip)
        )
    return result


def rows(ds: Sequence[int] = range(2, 13), groups: Sequence[int] = (1, 10, 100, 1000)) -> list[PaperRow]:
    result = [
        PaperRow("communication steps", 6, one_multicast(5, eager=True).steps),
        PaperRow("communication steps, lazy relay", 6, one_multicast(5, eager=False).steps),
        PaperRow("communication steps when fresh messages carry the gossip", 5, steps_with_fresh_messages(5)),
    ]
    counts = {(d, eager): one_multicast(d, eager=eager) for d in ds for eager in (True, False)}
    for d in ds:
        formula = 3 * (d - 1) ** 2 + 4 * (d - 1)
        result.append(PaperRow(f"messages, d = {d}, eager relay", formula, counts[d, True].without_gossip))
        result.append(PaperRow(f"gossip messages, d = {d}", (d - 1) ** 2, counts[d, True].lone_gossip))
        lazy = counts[d, False]
        result.append(PaperRow(f"messages, d = {d}, lazy relay (published: eager)", formula, lazy.without_gossip))
    result += implied_rows()
    for d in ds:
        result.append(PaperRow(f"largest message in bytes, d = {d}", "f(d)", counts[d, False].bytes_max))
    for number in groups:
        count = one_multicast(3, eager=False, groups=number)
        what = f"bytes sent for one multicast, d = 3, groups in the system: {number}"
        result.append(PaperRow(what, "independent of it", count.bytes_all))
    return result


PAPER = Paper(tables=lambda: [Table("SCALATOM, Table 2", rows())])
