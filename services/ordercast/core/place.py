"""A place in the order of a domain, which is the same in all of its groups.

It is an order key and an index into the messages of the envelope that has the key. Everything that comes before
the place has been read, or is to be left out; so a place is a cut through all groups of the domain at once.
"""

from typing import NamedTuple


class Place(NamedTuple):
    """Of what comes next. Places compare as they follow each other."""

    order_key: bytes = b""
    #: Of a message in the batch of the envelope with this key.
    nth: int = 0

    def behind(self) -> "Place":
        """Of what comes next after the message at this place."""
        return Place(self.order_key, self.nth + 1)


#: Above that of every message.
NTH_MAX = (1 << 32) - 1


def behind_all_of(sn_bytes: bytes, key_bytes: int) -> bytes:
    """The last order key of this length that begins so: no message has it, and a cut can be there.

    >>> behind_all_of(bytes(8), 10).hex()
    '0000000000000000ffff'
    """
    return sn_bytes.ljust(key_bytes, b"\xff")
