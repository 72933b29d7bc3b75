"""Which records of SCALATOM's machine are one group's: what a damaged one damages."""

from ordercast.protocols.scalatom import records
from ordercast.v1.sequencer_pb2 import PositionRecord

ROLE = "scalatom"


class ScalatomRecords:
    def group_of(self, key: bytes) -> str | None:
        """A key that is damaged itself may name no group at all."""
        if key[:1] not in records.OF_GROUPS:
            return None
        try:
            return records.group_of(key)
        except UnicodeDecodeError:
            return None

    def position_in(self, key: bytes, value: bytes) -> tuple[str, int] | None:
        if key[:1] != records.POSITION:
            return None
        return records.group_of(key), PositionRecord.FromString(value).position
