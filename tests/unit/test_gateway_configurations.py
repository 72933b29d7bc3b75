"""A gateway while groups change their replicas: whom it sends to, whom it believes, and what is finished."""

import pytest

from ordercast.core.view import OtherConfiguration
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.gateway_pb2 import PUBLISH_STATUS_OK, PUBLISH_STATUS_UNAVAILABLE
from ordercast.v1.scalatom_pb2 import EnvelopeDecided, EnvelopeDurable
from ordercast.v1.sequencer_pb2 import Disseminate, EnvelopeDelivered
from tests.unit.driving import destinations, edited, key_of, next_view, sends, sent, without_previous
from tests.unit.gateway_host import RESEND_S, VIEW, Host, envelopes, new, replies, status

#: n7 comes for n3 in a.
SECOND = next_view(VIEW, "a", "n1 n2 n7")


def durable(host: Host, envelope: Envelope, source: str, configuration: int, group: str = "a") -> None:
    host.receive(source, EnvelopeDurable(id=envelope.header.id, group=group, configuration=configuration))


def open_at(host: Host, envelope: Envelope) -> bool:
    return envelope.header.id in host.machine.open


def test_a_new_envelope_goes_to_the_new_replicas_and_names_their_configuration():
    host = Host(connected="n1 n2 n3 n4 n5 n6 n7")
    host.change(SECOND)
    ((to, message),) = sends(host.publish("a"), Disseminate)
    assert to == ["n1", "n2", "n7"]
    assert list(message.envelope.header.destinations) == destinations("a", configuration=2)


def test_an_open_envelope_goes_to_those_who_came_as_it_was():
    """Two coordinators of one instance would both skip phase 1."""
    host = Host()
    envelope = host.submit("a")
    host.change(SECOND)
    ((to, message),) = sends(host.tick(RESEND_S), Disseminate)
    assert to == ["n1", "n2", "n7"]
    assert message == Disseminate(envelope=envelope, again=True)


def test_it_does_so_soon_however_long_it_had_waited():
    host = Host()
    host.submit("a")
    for _ in range(8):
        host.tick(10.0)
    host.change(SECOND)
    assert sent(host.tick(RESEND_S), Disseminate), "though its patience had grown to much more"


def test_who_came_is_sent_what_is_open_when_it_connects():
    host = Host()
    envelope = host.submit("a")
    host.change(SECOND)
    assert sends(host.connect("n7"), Disseminate) == [(["n7"], Disseminate(envelope=envelope, again=True))]


def test_what_a_majority_has_on_disk_is_counted_within_one_configuration():
    host = Host()
    envelope = host.submit("a")
    host.deliver(envelope, 7, "a")
    durable(host, envelope, "n1", 1)
    host.change(SECOND)
    durable(host, envelope, "n2", 2)
    assert open_at(host, envelope), "n1 said so of the configuration before"
    durable(host, envelope, "n7", 2)
    assert not open_at(host, envelope)


@pytest.mark.parametrize("configuration", [1, 3])
def test_word_of_another_configuration_does_not_count_and_is_nobodys_mistake(configuration):
    host = Host()
    envelope = host.submit("a")
    host.deliver(envelope, 7, "a")
    host.change(SECOND)
    for source in ("n1", "n2"):
        with pytest.raises(OtherConfiguration):
            durable(host, envelope, source, configuration)
    assert open_at(host, envelope)


def test_word_of_an_early_version_counts_which_names_no_configuration():
    host = Host()
    envelope = host.submit("a")
    host.deliver(envelope, 7, "a")
    for source in ("n1", "n2"):
        durable(host, envelope, source, 0)
    assert not open_at(host, envelope)


def test_other_groups_need_not_say_it_again():
    host = Host()
    envelope = host.submit("a", "b")
    for group in ("a", "b"):
        host.deliver(envelope, 7, group)
    for source in ("n4", "n5"):
        durable(host, envelope, source, 1, "b")
    host.change(SECOND)
    for source in ("n2", "n7"):
        durable(host, envelope, source, 2)
    assert not open_at(host, envelope)


def test_a_receipt_does_not_wait_for_the_new_configuration():
    host = Host()
    envelope = host.submit("a")
    host.change(SECOND)
    (reply,) = replies(host.deliver(envelope, 7, "a"))
    assert reply.status == PUBLISH_STATUS_OK


def test_a_delivery_that_was_told_before_is_not_needed_again():
    host = Host()
    envelope = host.submit("a", "b")
    host.deliver(envelope, 7, "a")
    host.change(SECOND)
    (reply,) = replies(host.deliver(envelope, 7, "b"))
    assert reply.status == PUBLISH_STATUS_OK


def test_who_left_is_not_believed_and_not_blamed():
    host = Host()
    envelope = host.submit("a")
    host.change(SECOND)
    key = key_of(7, envelope)
    for message in (
        EnvelopeDecided(id=envelope.header.id, order_key=key),
        EnvelopeDelivered(id=envelope.header.id, group="a", order_key=key, outcomes=[new(1, 1, 0, key)]),
        EnvelopeDurable(id=envelope.header.id, group="a", configuration=1),
    ):
        with pytest.raises(OtherConfiguration):
            host.receive("n3", message)
    assert not host.machine.open[envelope.header.id].is_followed


def test_the_next_one_waits_for_the_decision_also_over_a_change():
    host = Host()
    first = host.submit("a")
    host.publish("a", first=2)
    host.change(SECOND)
    assert envelopes(host.tick(RESEND_S)) == [first], "sent again, and nothing new"
    (second,) = envelopes(host.decide(first, 7, "n2"))
    assert list(second.header.destinations) == destinations("a", configuration=2)


def test_that_the_configuration_before_is_over_changes_nothing():
    host = Host()
    envelope = host.submit("a")
    host.deliver(envelope, 7, "a")
    host.change(SECOND)
    durable(host, envelope, "n1", 2)
    host.change(without_previous(SECOND, "a", "n7"))
    durable(host, envelope, "n2", 2)
    assert not open_at(host, envelope)


def test_a_learner_is_no_replica_yet():
    host = Host(connected="n1 n2 n3 n7")
    host.change(edited(VIEW, "a", learners="n7"))
    assert [to for to, _ in sends(host.publish("a"), Disseminate)] == [["n1", "n2", "n3"]]


def test_with_too_many_lost_disks_a_group_has_no_quorum():
    host = Host()
    host.change(edited(VIEW, "a", lost="n1"))
    assert host.submit("a")
    host.change(edited(VIEW, "a", lost="n1 n2"))
    assert status(host.publish("a", client="c2")) == PUBLISH_STATUS_UNAVAILABLE
    assert host.submit("b", client="c2", producer=b"other")


def test_a_replica_that_lost_its_disk_coordinates_nothing():
    host = Host()
    host.change(edited(VIEW, "a", lost="n3"))
    assert host.submit("a").header.coordinator.process != "n3"
