"""What travels in the simulator is what a Packet and a Frame would be on the wire."""

import pytest

from ordercast.core import packets
from ordercast.v1.frame_pb2 import Frame, Packet, Section
from ordercast.v1.sequencer_pb2 import Pull

FIELDS = [field.name for field in Packet.DESCRIPTOR.oneofs_by_name["body"].fields]


@pytest.mark.parametrize("name", FIELDS)
def test_every_kind_of_message_comes_back_as_it_was_sent(name):
    message = type(getattr(Packet(), name))()
    data = packets.encode(message)
    packet = Packet()
    getattr(packet, name).SetInParent()
    assert data == packet.SerializeToString()
    assert (type(packets.decode(data)), packets.decode(data)) == (type(message), message)


@pytest.mark.parametrize("length", [0, 1, 100, 125, 126, 127, 128, 4000, 4092, 4093, 4094, 4095, 4096, 20_000])
def test_a_message_of_any_length_is_encoded_as_a_packet_would_be(length):
    message = Pull(id=bytes(length))
    assert packets.encode(message) == Packet(pull=message).SerializeToString()


def test_a_packet_without_a_body_is_nothing():
    assert packets.decode(b"") is None


def test_a_frame_holds_the_packets_of_one_write_and_no_other():
    one, two = packets.encode(Pull(id=b"1")), packets.encode(Pull(id=b"2"))
    first, second = packets.frame("sim", [one, two, one]), packets.frame("sim", [two])
    assert Frame.FromString(first) == Frame(sections=[Section(domain="sim", packets=[one, two, one])])
    assert packets.packets_of(first) == [one, two, one]
    assert packets.packets_of(second) == [two]
