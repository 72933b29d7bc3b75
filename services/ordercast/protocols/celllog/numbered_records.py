"""The records of machines whose logs are those of numbered.py. What is a protocol's own begins with other bytes.

p<group>    PositionRecord    how far the group's log is delivered
s, w                          about producers: records.py
"""

from ordercast.protocols.celllog.records import OF_LOGS, group_of, of_group
from ordercast.protocols.group_records import GroupRecords
from ordercast.v1.sequencer_pb2 import PositionRecord

POSITION = b"p"
NUMBERED_RECORDS = GroupRecords(
    (POSITION, *OF_LOGS), group_of, POSITION, lambda value: PositionRecord.FromString(value).position
)


def position(group: str) -> bytes:
    return of_group(POSITION, group)
