"""What travels in the simulator is what a Packet and a Frame would be on the wire."""

import pytest
from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from ordercast.core import packets
from ordercast.v1.frame_pb2 import Frame, Own, Packet, Section
from ordercast.v1.scalatom_pb2 import Pull

OWN = "own"
FIELDS = [field.name for field in Packet.DESCRIPTOR.oneofs_by_name["body"].fields if field.name != OWN]


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


def test_a_message_of_a_type_that_no_packet_has_a_field_for_comes_back_too():
    """As those of protocols in installed packages: any generated class will do."""
    message = Timestamp(seconds=7)
    data = packets.encode(message)
    own = Own(type="google.protobuf.Timestamp", protocol=message.SerializeToString())
    assert Packet.FromString(data) == Packet(own=own)
    assert (type(packets.decode(data)), packets.decode(data)) == (Timestamp, message)


@pytest.mark.parametrize(
    ("type_", "why"),
    [("", "not known"), ("nobody.Knows", "not known"), ("ordercast.v1.Pull", "a field of its own")],
)
def test_a_type_that_is_not_known_here_or_goes_another_way_is_malformed(type_, why):
    with pytest.raises(DecodeError, match=why):
        packets.decode(Packet(own=Own(type=type_)).SerializeToString())


def test_a_packet_without_a_body_is_nothing():
    assert packets.decode(b"") is None


def test_a_frame_holds_the_packets_of_one_write_and_no_other():
    one, two = packets.encode(Pull(id=b"1")), packets.encode(Pull(id=b"2"))
    first, second = packets.frame("sim", [one, two, one]), packets.frame("sim", [two])
    assert Frame.FromString(first) == Frame(sections=[Section(domain="sim", packets=[one, two, one])])
    assert packets.packets_of(first) == [one, two, one]
    assert packets.packets_of(second) == [two]
