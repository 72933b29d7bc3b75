"""Which records of a protocol's machine are one group's: what a damaged one damages."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ordercast.core.cells import cell_of

#: The kind of records that say which offset is next in a group that shares its cell.
GROUP_END = b"e"


def group_end(cell: str, address: str) -> bytes:
    """The key of the one about this group. No name holds a NUL."""
    return GROUP_END + cell.encode() + b"\0" + address.encode()


@dataclass(frozen=True, slots=True)
class GroupRecords:
    """A RecordScope (core/protocol.py) of records whose kind is the first byte of their key."""

    #: Kinds whose keys begin with a group, and the group in such a key.
    kinds: Collection[bytes]
    group_in: Callable[[bytes], str]
    #: The kind that says how far a group's log goes, and what such a record says.
    position_kind: bytes
    position_of: Callable[[bytes], int]

    def group_of(self, key: bytes) -> str | None:
        """A key that is damaged itself may name no group at all."""
        if key[:1] not in self.kinds:
            return None
        try:
            return self.group_in(key)
        except UnicodeDecodeError:
            return None

    def position_in(self, key: bytes, value: bytes) -> tuple[str, int] | None:
        if key[:1] != self.position_kind:
            return None
        return self.group_in(key), self.position_of(value)

    def end_of(self, address: str) -> bytes:
        return group_end(cell_of(address), address)
