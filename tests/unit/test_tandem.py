"""The example of a protocol that is not built in (examples/protocol): what its machine says and keeps."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast.core.ids import envelope_id
from ordercast.core.machine import ChannelReset, Deliver, Persist, Receive, Send, Start, ViewChanged
from ordercast.v1.common_pb2 import Batch, Destination, Envelope, Header, Message, ProducerRange
from ordercast.v1.membership_pb2 import DomainView, GroupView
from ordercast.v1.sequencer_pb2 import Disseminate, EnvelopeDelivered

PACKAGE = Path(__file__).resolve().parents[2] / "examples" / "protocol"
CLOCK = (0.0, 0.0)


@pytest.fixture
def tandem(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(PACKAGE))
    from ordercast_tandem import machine, protocol, tandem_pb2

    def numbered(number: int) -> Any:
        places = [tandem_pb2.Place(group="a", position=number)]
        return tandem_pb2.Numbered(number=number, envelope=envelope(number + 1), places=places)

    return SimpleNamespace(
        numbered=numbered,
        make=lambda process: machine.Tandem(process, protocol.Settings(sequencer="n1", standby="n2")),
        parse=protocol.parse,
        messages=tandem_pb2,
    )


def view(number: int = 1, lost: tuple[str, ...] = ()) -> ViewChanged:
    group = GroupView(group="a", configuration=1, replicas=["n1", "n2", "n3"], lost=lost)
    return ViewChanged(*CLOCK, DomainView(domain="d", number=number, groups=[group]))


def started(machine: Any, records: Any = (), lost: tuple[str, ...] = ()) -> Any:
    machine.step(Start(*CLOCK, 1, records))
    machine.step(view(lost=lost))
    return machine


def envelope(counter: int) -> Envelope:
    ranges = [ProducerRange(producer=b"p", first_sequence=counter, count=1)]
    destinations = [Destination(group="a", configuration=1)]
    header = Header(id=envelope_id(7, counter), destinations=destinations, ranges=ranges, gateway="g")
    return Envelope(header=header, body=Batch(messages=[Message(payload=b"x")]).SerializeToString())


def receive(machine: Any, source: str, message: Any, incarnation: int = 7) -> list[Any]:
    return machine.step(Receive(*CLOCK, source, incarnation, message))


def sent(effects: list[Any], kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, Send) and isinstance(effect.message, kind)]


def records_of(effects: list[Any]) -> list[tuple[bytes, bytes]]:
    rows = dict(row for effect in effects if isinstance(effect, Persist) for row in effect.records)
    return [(key, value) for key, value in rows.items() if value is not None]


def test_a_number_is_on_the_disk_before_the_standby_hears_of_it_and_there_before_replicas_do(tandem):
    sequencer = started(tandem.make("n1"))
    receive(sequencer, "n2", tandem.messages.Kept(next=0))
    effects = receive(sequencer, "g", Disseminate(envelope=envelope(1)))
    assert isinstance(effects[0], Persist)
    assert [send.to for send in sent(effects, tandem.messages.Keep)] == [("n2",)]
    assert not sent(effects, tandem.messages.Ordered)
    effects = receive(sequencer, "n2", tandem.messages.Kept(next=1))
    assert [send.to for send in sent(effects, tandem.messages.Ordered)] == [("n1", "n2", "n3")]


def test_a_sequencer_with_less_than_its_standby_numbers_nothing(tandem):
    sequencer = started(tandem.make("n1"))
    receive(sequencer, "n2", tandem.messages.Kept(next=3))
    assert receive(sequencer, "g", Disseminate(envelope=envelope(1))) == []


def test_after_a_restart_numbers_and_positions_go_on(tandem):
    sequencer = started(tandem.make("n1"))
    receive(sequencer, "n2", tandem.messages.Kept(next=0))
    records = records_of(receive(sequencer, "g", Disseminate(envelope=envelope(1))))
    again = started(tandem.make("n1"), records)
    receive(again, "n2", tandem.messages.Kept(next=1))
    (keep,) = sent(receive(again, "g", Disseminate(envelope=envelope(2))), tandem.messages.Keep)
    assert keep.message.numbered.number == 1
    assert [(place.group, place.position) for place in keep.message.numbered.places] == [("a", 1)]


def test_the_standby_takes_over_with_what_it_kept_and_takes_no_more_from_the_one_before(tandem):
    standby = started(tandem.make("n2"))
    numbered = tandem.numbered(0)
    (kept,) = sent(receive(standby, "n1", tandem.messages.Keep(numbered=numbered)), tandem.messages.Kept)
    assert kept.message.next == 1
    effects = standby.step(view(2, lost=("n1",)))
    assert [send.message.numbered for send in sent(effects, tandem.messages.Ordered)] == [numbered]
    assert receive(standby, "n1", tandem.messages.Keep(numbered=tandem.numbered(1))) == []


def test_a_replica_asks_for_what_is_missing_and_reports_what_is_on_its_disk(tandem):
    replica = started(tandem.make("n3"))
    replica.step(ChannelReset(*CLOCK, "n1", 1))
    effects = receive(replica, "n1", tandem.messages.Ordered(numbered=tandem.numbered(1)))
    assert [send.message.position for send in sent(effects, tandem.messages.Have)] == [0]
    effects = receive(replica, "n1", tandem.messages.Ordered(numbered=tandem.numbered(0)))
    assert [type(effect) for effect in effects[:2]] == [Deliver, Persist]
    assert [send.to for send in sent(effects, EnvelopeDelivered)] == [("g",)]


@pytest.mark.parametrize("settings", [{"sequencer": "n1", "standby": "n1"}, {"third": "n3"}, {"standby": ""}])
def test_settings_name_two_nodes_and_nothing_else(tandem, settings):
    with pytest.raises(ValueError, match=r"two nodes|no such setting"):
        tandem.parse(settings)
