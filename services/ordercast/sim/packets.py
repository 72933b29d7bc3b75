"""Between generated message classes and the Packet that carries them."""

from typing import Any

from ordercast.v1.frame_pb2 import Frame, Packet, Section

#: Message class -> name of its field in the Packet's oneof.
FIELD_OF: dict[type, str] = {}
for _field in Packet.DESCRIPTOR.oneofs_by_name["body"].fields:
    FIELD_OF[type(getattr(Packet(), _field.name))] = _field.name


def encode(message: Any) -> bytes:
    data: bytes = Packet(**{FIELD_OF[type(message)]: message}).SerializeToString()
    return data


def decode(data: bytes) -> Any:
    packet = Packet.FromString(data)
    field = packet.WhichOneof("body")
    return None if field is None else getattr(packet, field)


def frame(domain: str, packets: list[bytes]) -> bytes:
    data: bytes = Frame(sections=(Section(domain=domain, packets=packets),)).SerializeToString()
    return data


def packets_of(data: bytes) -> list[bytes]:
    return [packet for section in Frame.FromString(data).sections for packet in section.packets]
