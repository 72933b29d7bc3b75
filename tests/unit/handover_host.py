"""A replica about to start in a configuration, and what those of the one before would hand over to it."""

from typing import Any

from ordercast.core.machine import Effect
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.scalatom_pb2 import HandedOver, HandOver, HandOverAsk, RecTs
from tests.unit.driving import envelope_of, next_view, sent, sent_when_durable
from tests.unit.scalatom_host import VIEW, Host, told_in

#: n6 comes for n3. Of the configuration before, n1, n2 and n3 are sealed.
SECOND = next_view(VIEW, "a", "n1 n2 n6")
ONE, TWO, BOTH = envelope_of(1, "a"), envelope_of(2, "a"), envelope_of(3, "a", "b")


def newcomer(**settings: Any) -> Host:
    """n6, which has nothing of the group."""
    return Host("n6", view=SECOND, **settings)


def open_(envelope: Envelope, rec_ts: int | None, **fields: int) -> HandedOver:
    """Stamped, with an entry at the same place unless said otherwise."""
    return HandedOver(envelope=envelope, rec_ts=rec_ts, **{"entry": rec_ts or 0, **fields})


def hand_over(*envelopes: HandedOver, **fields: Any) -> HandOver:
    return HandOver(**{"group": "a", "configuration": 2, "envelopes": envelopes, **fields})


def start(host: Host, first: HandOver, second: HandOver) -> list[Effect]:
    """From what n2 and n3 had."""
    assert not host.replica().is_active
    host.receive("n2", first)
    effects = host.receive("n3", second)
    assert host.replica().is_active
    return effects


def stamps(effects: list[Effect], envelope: Envelope) -> dict[str, int]:
    """By group, as told."""
    told = [message for message in sent(effects, RecTs) if message.id == envelope.header.id]
    return {destination.group: message.rec_ts for message in told for destination in message.groups}


def entries(effects: list[Effect], peer: str) -> list[tuple[int, bytes]]:
    return [(e.rec_ts, e.id) for gossip in told_in(effects, peer) for e in gossip.entries]


def told_by(host: Host, source: str) -> HandOver:
    ((_, told),) = sent_when_durable(host.receive(source, HandOverAsk(group="a", configuration=2)), HandOver)
    return told
