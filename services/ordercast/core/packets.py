"""Between generated message classes and the Packet that carries them."""

from typing import Any

from ordercast.v1.frame_pb2 import Frame, Packet, Section

#: Message class -> name of its field in the Packet's oneof, and that field's tag on the wire.
FIELD_OF: dict[type, str] = {}
_TAG_OF: dict[type, bytes] = {}


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


for _field in Packet.DESCRIPTOR.oneofs_by_name["body"].fields:
    _class = type(getattr(Packet(), _field.name))
    FIELD_OF[_class] = _field.name
    _TAG_OF[_class] = _varint(_field.number << 3 | 2)

#: Most lengths are short.
_LENGTHS = [_varint(length) for length in range(4096)]
_SCRATCH = Frame(sections=(Section(),))


def encode(message: Any) -> bytes:
    """A Packet with this message: tag, length, content. The same bytes, without copying it into a Packet first."""
    data: bytes = message.SerializeToString()
    length = len(data)
    return _TAG_OF[type(message)] + (_LENGTHS[length] if length < 4096 else _varint(length)) + data


def decode(data: bytes) -> Any:
    packet = Packet.FromString(data)
    field = packet.WhichOneof("body")
    return None if field is None else getattr(packet, field)


def frame(domain: str, packets: list[bytes]) -> bytes:
    section = _SCRATCH.sections[0]
    section.domain = domain
    section.packets[:] = packets
    data: bytes = _SCRATCH.SerializeToString()
    return data


def packets_of(data: bytes) -> list[bytes]:
    return [packet for section in Frame.FromString(data).sections for packet in section.packets]
