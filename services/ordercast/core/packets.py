"""Between generated message classes and the Packet that carries them.

Messages of built-in protocols have a field in the Packet. Those of others are carried with the name of their type
(`Own`): whoever has the protocol has loaded its generated code, and finds the class by that name.
"""

from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from ordercast.v1.frame_pb2 import Frame, Own, Packet, Section

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
    tag = _TAG_OF.get(type(message))
    if tag is None:
        tag, data = _TAG_OF[Own], Own(type=message.DESCRIPTOR.full_name, protocol=data).SerializeToString()
    length = len(data)
    return tag + (_LENGTHS[length] if length < 4096 else _varint(length)) + data


def decode(data: bytes) -> Any:
    """None if it carries nothing. Raises DecodeError if it is malformed, or of a type that is not known here."""
    packet = Packet.FromString(data)
    field = packet.WhichOneof("body")
    if field == "own":
        return _own(packet.own)
    return None if field is None else getattr(packet, field)


def _own(own: Own) -> Any:
    try:
        type_ = message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(own.type))
    except KeyError:
        raise DecodeError(f"a message of a type that is not known here: {own.type[:100]!r}") from None
    if type_ in FIELD_OF:
        raise DecodeError(f"{own.type} has a field of its own in a packet")
    return type_.FromString(own.protocol)


def frame(domain: str, packets: list[bytes]) -> bytes:
    section = _SCRATCH.sections[0]
    section.domain = domain
    section.packets[:] = packets
    data: bytes = _SCRATCH.SerializeToString()
    return data


def packets_of(data: bytes) -> list[bytes]:
    return [packet for section in Frame.FromString(data).sections for packet in section.packets]
