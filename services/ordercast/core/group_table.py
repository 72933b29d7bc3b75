"""Groups by name, of which there may be very many that share their cells.

Those are kept packed, a few bytes each; what is got is a copy, and who changes it puts it back. Groups that have a
cell to themselves are few, and kept as they are.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, MutableMapping

from ordercast.core.ids import group_name
from ordercast.v1.membership_pb2 import Group

#: How protobuf marks fields that say how long they are.
_LENGTH_DELIMITED = 2


class GroupTable(MutableMapping[str, Group]):
    def __init__(self) -> None:
        self._kept: dict[str, Group | bytes] = {}
        #: All names in their order, if nobody came or went since somebody asked.
        self._sorted: list[str] | None = None

    def __getitem__(self, name: str) -> Group:
        kept = self._kept[name]
        return Group.FromString(kept) if isinstance(kept, bytes) else kept

    def __setitem__(self, name: str, group: Group) -> None:
        if name not in self._kept:
            self._sorted = None
        self._kept[name] = group.SerializeToString(deterministic=True) if group.cell else group

    def __delitem__(self, name: str) -> None:
        del self._kept[name]
        self._sorted = None

    def __contains__(self, name: object) -> bool:
        return name in self._kept

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def as_field(self, number: int) -> bytes:
        """All of them, by name, as a repeated field of a message that has them."""
        parts: list[bytes] = []
        for name in self.names_from(""):
            kept = self._kept[name]
            packed = kept if isinstance(kept, bytes) else kept.SerializeToString(deterministic=True)
            parts += (_varint(number << 3 | _LENGTH_DELIMITED), _varint(len(packed)), packed)
        return b"".join(parts)

    def names_from(self, first: str, behind: str = "") -> Iterator[str]:
        """In their order: from the first one on, and behind the other."""
        if self._sorted is None:
            self._sorted = sorted(self._kept)
        names = self._sorted
        start = max(bisect_left(names, first), bisect_right(names, behind) if behind else 0)
        for index in range(start, len(names)):
            yield names[index]


def _varint(number: int) -> bytes:
    """
    >>> _varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


class GroupsById(Mapping[str, Group]):
    """The same groups by their ids: no two of them have one name."""

    def __init__(self, by_name: GroupTable) -> None:
        self._by_name = by_name

    def __getitem__(self, id_: str) -> Group:
        group = self._by_name[group_name(id_)]
        if group.id != id_:
            raise KeyError(id_)
        return group

    def __iter__(self) -> Iterator[str]:
        for group in self._by_name.values():
            yield group.id

    def __len__(self) -> int:
        return len(self._by_name)
