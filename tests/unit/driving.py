"""One machine driven by hand: its disk, its clock, and short words for what goes in and what comes out."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ordercast.core.ids import envelope_id, order_key, pack_u64
from ordercast.core.machine import (
    ChannelReset,
    ChecksItself,
    Deliver,
    Effect,
    Event,
    Hand,
    Machine,
    Persist,
    Receive,
    ResetLog,
    Send,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.core.view import LateView
from ordercast.gateway.machine import Fill
from ordercast.sim.disk import Log
from ordercast.v1.common_pb2 import Batch, Destination, Envelope, Header, Incarnation, Message, ProducerRange
from ordercast.v1.membership_pb2 import Configuration, DomainView, GroupView

#: The incarnation of each process in these conversations; a restart adds 100.
LIVES = {**{f"n{i}": i for i in range(1, 8)}, "g1": 21, "g2": 22, "c1": 31, "c2": 32}

CONFIGURATION = 1


def view_of(groups: dict[str, str], acceptors: dict[str, str] | None = None) -> DomainView:
    """{"a": "n1 n2 n3"}; acceptors are the replicas unless said otherwise."""
    view = DomainView(domain="test", number=1)
    for name, replicas in groups.items():
        view.groups.append(
            GroupView(
                group=name,
                configuration=CONFIGURATION,
                replicas=replicas.split(),
                acceptors=(acceptors or {}).get(name, replicas).split(),
            )
        )
    return view


def edited(view: DomainView, group: str, **fields: str) -> DomainView:
    """The next view, in which these lists of the group's are others: learners="n6", lost="", replicas="n1 n2"."""
    found = DomainView()
    found.CopyFrom(view)
    found.number += 1
    there = next(one for one in found.groups if one.group == group)
    for name, value in fields.items():
        getattr(there, name)[:] = value.split()
    return found


def next_view(view: DomainView, group: str, replicas: str, acceptors: str | None = None) -> DomainView:
    """The group's next configuration begins: the present one is the one before, and nobody has started."""
    acceptors = replicas if acceptors is None else acceptors
    starting = " ".join(sorted({*replicas.split(), *acceptors.split()}))
    found = edited(view, group, replicas=replicas, acceptors=acceptors, starting=starting, learners="", lost="")
    there = next(one for one in found.groups if one.group == group)
    before = next(one for one in view.groups if one.group == group)
    there.configuration += 1
    there.previous.CopyFrom(
        Configuration(
            number=before.configuration, replicas=before.replicas, acceptors=before.acceptors, lost=before.lost
        )
    )
    return found


def without_previous(view: DomainView, group: str, starting: str = "") -> DomainView:
    """A majority has started, so that the configuration before is over; these have not."""
    found = edited(view, group, starting=starting)
    next(one for one in found.groups if one.group == group).ClearField("previous")
    return found


class Driven:
    """Every Persist is durable at once, with the deliveries before it; a restart keeps the disk."""

    def __init__(self, name: str, make: Callable[[], Machine], view: DomainView | None) -> None:
        self.name = name
        self.make = make
        self.view = view
        self.disk: dict[bytes, bytes] = {}
        self.logs: dict[str, Log] = {}
        self.now = 100.0
        self.incarnation = LIVES[name] - 100
        self.machine: Any = None
        self.restart()

    def restart(self) -> list[Effect]:
        self.incarnation += 100
        self.machine = self.make()
        effects = self.step(Start, self.incarnation, list(self.disk.items()))
        return effects + self.step(ViewChanged, self.view) if self.view is not None else effects

    def _stepped(self, event: Event) -> list[Effect]:
        """With what follows from what the machine tells itself."""
        effects: list[Effect] = []
        for effect in self.machine.step(event):
            if isinstance(effect, Hand) and isinstance(effect.event, Fill):
                effects += self._stepped(effect.event)
            else:
                effects.append(effect)
        if isinstance(self.machine, ChecksItself):
            self.machine.check_invariants()
        return effects

    def step(self, event: type[Event], *fields: Any) -> list[Effect]:
        effects = self._stepped(event(self.now, 0.0, *fields))
        for effect in effects:
            if isinstance(effect, Persist):
                for key, value in effect.records:
                    self.disk.pop(key, None) if value is None else self.disk.update({key: value})
            elif isinstance(effect, Deliver):
                log = self.logs.setdefault(effect.group, Log())
                assert effect.position == log.ends
                log.entries.append(effect.entry)
            elif isinstance(effect, ResetLog):
                self.logs[effect.group] = Log(effect.position)
        return effects

    def change(self, view: DomainView) -> list[Effect]:
        self.view = view
        return self.step(ViewChanged, view)

    def receive(self, source: str, message: Any) -> list[Effect]:
        return self.step(Receive, source, LIVES[source], message)

    def hear(self, source: str, message: Any) -> list[Effect]:
        """As receive, with whatever its driver has to do for it done."""
        return self.receive(source, message)

    def connect(self, peer: str, incarnation: int | None = None) -> list[Effect]:
        return self.step(ChannelReset, peer, incarnation or LIVES[peer])

    def tick(self, seconds: float = 0.0) -> list[Effect]:
        self.now += seconds
        return self.step(TimerFired, "tick", 0)


def talk(machines: Mapping[str, Driven], source: str, effects: Sequence[Effect]) -> list[tuple[str, Effect]]:
    """Everything that these say to each other, beginning with this, until they have nothing more to say.

    Returns what each of them did, but for what was sent. What a view that is late refuses is lost.
    """
    did: list[tuple[str, Effect]] = []
    pending = deque([(source, effect) for effect in effects])
    while pending:
        speaker, effect = pending.popleft()
        if isinstance(effect, Persist):
            pending.extendleft((speaker, send) for send in reversed(effect.then))
        if not isinstance(effect, Send):
            did.append((speaker, effect))
            continue
        for name in effect.to:
            if name in machines and type(effect.message) in machines[name].machine.handles:
                with suppress(LateView):
                    pending.extend((name, one) for one in machines[name].hear(speaker, effect.message))
    return did


# ------------------------------------------------------------------------------------------------- what went in


def destinations(*groups: str, configuration: int = CONFIGURATION) -> list[Destination]:
    return [Destination(group=group, configuration=configuration) for group in groups]


def range_of(producer: bytes = b"p", first: int = 1, count: int = 1, **fields: Any) -> ProducerRange:
    return ProducerRange(producer=producer, first_sequence=first, count=count, **fields)


def envelope_of(
    counter: int,
    *groups: str,
    coordinator: str = "n1",
    session: int | None = None,
    ranges: Sequence[ProducerRange] | None = None,
    gateway: str = "g1",
    configuration: int = CONFIGURATION,
    **fields: Any,
) -> Envelope:
    """Of gateway g1, one message of a producer of its own unless ranges are given."""
    if ranges is None:
        ranges = [range_of(b"p%d" % counter)]
    header = Header(
        id=envelope_id(LIVES[gateway], counter),
        destinations=destinations(*groups, configuration=configuration),
        coordinator=Incarnation(process=coordinator, number=LIVES[coordinator]),
        session=b"" if session is None else pack_u64(session),
        ranges=ranges,
        gateway=gateway,
        **fields,
    )
    messages = [Message(payload=b"message") for range_ in ranges for _ in range(range_.count)]
    return Envelope(header=header, body=Batch(messages=messages).SerializeToString())


def key_of(sn: int, envelope: Envelope) -> bytes:
    return order_key(sn, envelope.header.id)


# ------------------------------------------------------------------------------------------------- what came out


def sent(effects: list[Effect], type_: type) -> list[Any]:
    return [message for _, message in sends(effects, type_)]


def sends(effects: list[Effect], type_: type) -> list[tuple[list[str], Any]]:
    """(to, message) of what leaves at once, or behind a barrier."""
    return [(list(e.to), e.message) for e in effects if isinstance(e, Send) and isinstance(e.message, type_)]


def sent_when_durable(effects: list[Effect], type_: type) -> list[tuple[list[str], Any]]:
    """(to, message) of what waits for a Persist that is no barrier."""
    return [
        (list(send.to), send.message)
        for effect in effects
        if isinstance(effect, Persist)
        for send in effect.then
        if isinstance(send.message, type_)
    ]


def handed(effects: list[Effect], type_: type) -> list[Any]:
    return [e.event for e in effects if isinstance(e, Hand) and isinstance(e.event, type_)]


def delivered(effects: list[Effect]) -> list[tuple[str, int, bytes]]:
    """(group, position, envelope id)"""
    return [(e.group, e.position, e.entry.envelope.header.id) for e in effects if isinstance(e, Deliver)]


def kinds(effects: list[Effect]) -> list[str]:
    return [type(getattr(e, "message", None) or getattr(e, "event", None) or e).__name__ for e in effects]


def place(effects: list[Effect], type_: type) -> int:
    """Where the first effect of this type is, or the first send of such a message."""
    return next(i for i, e in enumerate(effects) if isinstance(getattr(e, "message", e), type_))
