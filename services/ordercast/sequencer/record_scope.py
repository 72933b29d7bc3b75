"""Which records of a protocol's machine are one group's: what a damaged one damages."""

from collections.abc import Collection
from types import ModuleType

from ordercast.protocols.isis import records as isis
from ordercast.protocols.scalatom import records as scalatom
from ordercast.v1.isis_pb2 import IsisRecord
from ordercast.v1.sequencer_pb2 import PositionRecord


class GroupRecords:
    """Of a machine whose `records` module tells the kinds of its keys."""

    def __init__(self, records: ModuleType, position: type[PositionRecord] | type[IsisRecord]) -> None:
        self._kinds: Collection[bytes] = records.OF_GROUPS
        self._records = records
        self._position = position

    def group_of(self, key: bytes) -> str | None:
        """A key that is damaged itself may name no group at all."""
        if key[:1] not in self._kinds:
            return None
        try:
            group: str = self._records.group_of(key)
        except UnicodeDecodeError:
            return None
        return group

    def position_in(self, key: bytes, value: bytes) -> tuple[str, int] | None:
        if key[:1] != self._records.POSITION:
            return None
        return self._records.group_of(key), self._position.FromString(value).position


#: By role.
SCOPES = {"scalatom": GroupRecords(scalatom, PositionRecord), "isis": GroupRecords(isis, IsisRecord)}
