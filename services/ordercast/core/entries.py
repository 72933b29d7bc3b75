"""What can be told of a serialised LogEntry without parsing it: entries are passed on as they are stored."""

from ordercast.v1.sequencer_pb2 import LogEntry

#: Before the first field of an entry, which is its order key: number 1, of a length that follows.
_KEY_TAG = 0x0A
#: A length below it is one byte.
_LENGTHS = 0x80


def order_key_in(serialised: bytes) -> bytes:
    """
    >>> order_key_in(LogEntry(order_key=b"key", first_offset=7).SerializeToString())
    b'key'
    """
    if len(serialised) > 2 and serialised[0] == _KEY_TAG and serialised[1] < _LENGTHS:
        return bytes(serialised[2 : 2 + serialised[1]])
    return LogEntry.FromString(serialised).order_key
