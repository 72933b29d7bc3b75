from ordercast.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Disseminate(_message.Message):
    __slots__ = ("envelope", "again")
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    envelope: _common_pb2.Envelope
    again: bool
    def __init__(self, envelope: _Optional[_Union[_common_pb2.Envelope, _Mapping]] = ..., again: _Optional[bool] = ...) -> None: ...

class FetchLog(_message.Message):
    __slots__ = ("group", "configuration", "position")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    position: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., position: _Optional[int] = ...) -> None: ...

class LogEntry(_message.Message):
    __slots__ = ("order_key", "envelope", "first_offset", "outcomes", "protocol", "besides", "bases", "news", "dropped")
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    BESIDES_FIELD_NUMBER: _ClassVar[int]
    BASES_FIELD_NUMBER: _ClassVar[int]
    NEWS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    order_key: bytes
    envelope: _common_pb2.Envelope
    first_offset: int
    outcomes: _containers.RepeatedCompositeFieldContainer[_common_pb2.RangeOutcome]
    protocol: bytes
    besides: bytes
    bases: _containers.RepeatedScalarFieldContainer[int]
    news: _containers.RepeatedScalarFieldContainer[int]
    dropped: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, order_key: _Optional[bytes] = ..., envelope: _Optional[_Union[_common_pb2.Envelope, _Mapping]] = ..., first_offset: _Optional[int] = ..., outcomes: _Optional[_Iterable[_Union[_common_pb2.RangeOutcome, _Mapping]]] = ..., protocol: _Optional[bytes] = ..., besides: _Optional[bytes] = ..., bases: _Optional[_Iterable[int]] = ..., news: _Optional[_Iterable[int]] = ..., dropped: _Optional[_Iterable[int]] = ...) -> None: ...

class LogChunk(_message.Message):
    __slots__ = ("group", "configuration", "position", "entries", "head", "begins", "checksum")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    position: int
    entries: _containers.RepeatedCompositeFieldContainer[LogEntry]
    head: int
    begins: int
    checksum: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., position: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[LogEntry, _Mapping]]] = ..., head: _Optional[int] = ..., begins: _Optional[int] = ..., checksum: _Optional[int] = ...) -> None: ...

class ProducerRecord(_message.Message):
    __slots__ = ("producer", "groups", "epoch", "last_sequence", "open_tokens", "last_sn", "spans", "client", "established", "turn", "epoch_forgotten")
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OPEN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LAST_SN_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    ESTABLISHED_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    producer: bytes
    groups: _containers.RepeatedScalarFieldContainer[str]
    epoch: int
    last_sequence: int
    open_tokens: _containers.RepeatedScalarFieldContainer[bytes]
    last_sn: int
    spans: _containers.RepeatedCompositeFieldContainer[_common_pb2.Span]
    client: bytes
    established: bool
    turn: int
    epoch_forgotten: int
    def __init__(self, producer: _Optional[bytes] = ..., groups: _Optional[_Iterable[str]] = ..., epoch: _Optional[int] = ..., last_sequence: _Optional[int] = ..., open_tokens: _Optional[_Iterable[bytes]] = ..., last_sn: _Optional[int] = ..., spans: _Optional[_Iterable[_Union[_common_pb2.Span, _Mapping]]] = ..., client: _Optional[bytes] = ..., established: _Optional[bool] = ..., turn: _Optional[int] = ..., epoch_forgotten: _Optional[int] = ...) -> None: ...

class DoneRecord(_message.Message):
    __slots__ = ("incarnation", "done", "open")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    done: int
    open: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, incarnation: _Optional[int] = ..., done: _Optional[int] = ..., open: _Optional[_Iterable[int]] = ...) -> None: ...

class DeliveredRecord(_message.Message):
    __slots__ = ("id", "order_key", "rec_ts", "destinations", "buried", "gateway", "position", "configuration")
    ID_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    REC_TS_FIELD_NUMBER: _ClassVar[int]
    DESTINATIONS_FIELD_NUMBER: _ClassVar[int]
    BURIED_FIELD_NUMBER: _ClassVar[int]
    GATEWAY_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    order_key: bytes
    rec_ts: int
    destinations: _containers.RepeatedCompositeFieldContainer[_common_pb2.Destination]
    buried: bool
    gateway: str
    position: int
    configuration: int
    def __init__(self, id: _Optional[bytes] = ..., order_key: _Optional[bytes] = ..., rec_ts: _Optional[int] = ..., destinations: _Optional[_Iterable[_Union[_common_pb2.Destination, _Mapping]]] = ..., buried: _Optional[bool] = ..., gateway: _Optional[str] = ..., position: _Optional[int] = ..., configuration: _Optional[int] = ...) -> None: ...

class GroupEnd(_message.Message):
    __slots__ = ("group", "offset")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    group: str
    offset: int
    def __init__(self, group: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class Snapshot(_message.Message):
    __slots__ = ("group", "configuration", "position", "offset", "order_key", "producers", "done", "delivered", "retired", "ends")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    position: int
    offset: int
    order_key: bytes
    producers: _containers.RepeatedCompositeFieldContainer[ProducerRecord]
    done: _containers.RepeatedCompositeFieldContainer[DoneRecord]
    delivered: _containers.RepeatedCompositeFieldContainer[DeliveredRecord]
    retired: int
    ends: _containers.RepeatedCompositeFieldContainer[GroupEnd]
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., position: _Optional[int] = ..., offset: _Optional[int] = ..., order_key: _Optional[bytes] = ..., producers: _Optional[_Iterable[_Union[ProducerRecord, _Mapping]]] = ..., done: _Optional[_Iterable[_Union[DoneRecord, _Mapping]]] = ..., delivered: _Optional[_Iterable[_Union[DeliveredRecord, _Mapping]]] = ..., retired: _Optional[int] = ..., ends: _Optional[_Iterable[_Union[GroupEnd, _Mapping]]] = ...) -> None: ...

class SnapshotAsk(_message.Message):
    __slots__ = ("group", "configuration", "token", "part")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    token: int
    part: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., token: _Optional[int] = ..., part: _Optional[int] = ...) -> None: ...

class SnapshotPart(_message.Message):
    __slots__ = ("group", "configuration", "token", "part", "parts", "data", "checksum")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    token: int
    part: int
    parts: int
    data: bytes
    checksum: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., token: _Optional[int] = ..., part: _Optional[int] = ..., parts: _Optional[int] = ..., data: _Optional[bytes] = ..., checksum: _Optional[int] = ...) -> None: ...

class PositionRecord(_message.Message):
    __slots__ = ("position", "offset", "order_key")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    position: int
    offset: int
    order_key: bytes
    def __init__(self, position: _Optional[int] = ..., offset: _Optional[int] = ..., order_key: _Optional[bytes] = ...) -> None: ...

class EnvelopeDelivered(_message.Message):
    __slots__ = ("id", "group", "order_key", "outcomes", "protocol", "besides", "bases")
    ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    BESIDES_FIELD_NUMBER: _ClassVar[int]
    BASES_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    group: str
    order_key: bytes
    outcomes: _containers.RepeatedCompositeFieldContainer[_common_pb2.RangeOutcome]
    protocol: bytes
    besides: bytes
    bases: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, id: _Optional[bytes] = ..., group: _Optional[str] = ..., order_key: _Optional[bytes] = ..., outcomes: _Optional[_Iterable[_Union[_common_pb2.RangeOutcome, _Mapping]]] = ..., protocol: _Optional[bytes] = ..., besides: _Optional[bytes] = ..., bases: _Optional[_Iterable[int]] = ...) -> None: ...

class StartAt(_message.Message):
    __slots__ = ("offset", "earliest", "latest", "stored_ms", "last")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    EARLIEST_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    STORED_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    offset: int
    earliest: bool
    latest: bool
    stored_ms: int
    last: int
    def __init__(self, offset: _Optional[int] = ..., earliest: _Optional[bool] = ..., latest: _Optional[bool] = ..., stored_ms: _Optional[int] = ..., last: _Optional[int] = ...) -> None: ...

class ReadGroupRequest(_message.Message):
    __slots__ = ("group", "start", "stop_at_end", "alive", "watermarks", "chunk_bytes")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_AT_END_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    WATERMARKS_FIELD_NUMBER: _ClassVar[int]
    CHUNK_BYTES_FIELD_NUMBER: _ClassVar[int]
    group: str
    start: StartAt
    stop_at_end: bool
    alive: bool
    watermarks: bool
    chunk_bytes: int
    def __init__(self, group: _Optional[str] = ..., start: _Optional[_Union[StartAt, _Mapping]] = ..., stop_at_end: _Optional[bool] = ..., alive: _Optional[bool] = ..., watermarks: _Optional[bool] = ..., chunk_bytes: _Optional[int] = ...) -> None: ...

class ReadGroupResponse(_message.Message):
    __slots__ = ("entries", "first_offset", "next_offset", "start_offset", "alive_ms", "stored_ms", "besides", "watermark")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ALIVE_MS_FIELD_NUMBER: _ClassVar[int]
    STORED_MS_FIELD_NUMBER: _ClassVar[int]
    BESIDES_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedScalarFieldContainer[bytes]
    first_offset: int
    next_offset: int
    start_offset: int
    alive_ms: int
    stored_ms: _containers.RepeatedScalarFieldContainer[int]
    besides: bytes
    watermark: bytes
    def __init__(self, entries: _Optional[_Iterable[bytes]] = ..., first_offset: _Optional[int] = ..., next_offset: _Optional[int] = ..., start_offset: _Optional[int] = ..., alive_ms: _Optional[int] = ..., stored_ms: _Optional[_Iterable[int]] = ..., besides: _Optional[bytes] = ..., watermark: _Optional[bytes] = ...) -> None: ...

class AdvanceRequest(_message.Message):
    __slots__ = ("cells", "order_key")
    CELLS_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    cells: _containers.RepeatedScalarFieldContainer[str]
    order_key: bytes
    def __init__(self, cells: _Optional[_Iterable[str]] = ..., order_key: _Optional[bytes] = ...) -> None: ...

class AdvanceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadLiveRequest(_message.Message):
    __slots__ = ("group", "alive")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    group: str
    alive: bool
    def __init__(self, group: _Optional[str] = ..., alive: _Optional[bool] = ...) -> None: ...

class ReadLiveResponse(_message.Message):
    __slots__ = ("entries", "alive_ms")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    ALIVE_MS_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedScalarFieldContainer[bytes]
    alive_ms: int
    def __init__(self, entries: _Optional[_Iterable[bytes]] = ..., alive_ms: _Optional[int] = ...) -> None: ...

class DescribeReplicaRequest(_message.Message):
    __slots__ = ("group", "stored_ms", "order_key")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    STORED_MS_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    group: str
    stored_ms: int
    order_key: bytes
    def __init__(self, group: _Optional[str] = ..., stored_ms: _Optional[int] = ..., order_key: _Optional[bytes] = ...) -> None: ...

class ReplicaFact(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class DescribeReplicaResponse(_message.Message):
    __slots__ = ("first_offset", "next_offset", "bytes", "position", "damaged_records", "repaired_entries", "damaged_entries", "stored_offset", "protocol", "facts", "facts_number", "orderer", "key_offset", "first_key", "reached_key", "passed_key")
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    DAMAGED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    REPAIRED_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    DAMAGED_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    STORED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    FACTS_NUMBER_FIELD_NUMBER: _ClassVar[int]
    ORDERER_FIELD_NUMBER: _ClassVar[int]
    KEY_OFFSET_FIELD_NUMBER: _ClassVar[int]
    FIRST_KEY_FIELD_NUMBER: _ClassVar[int]
    REACHED_KEY_FIELD_NUMBER: _ClassVar[int]
    PASSED_KEY_FIELD_NUMBER: _ClassVar[int]
    first_offset: int
    next_offset: int
    bytes: int
    position: int
    damaged_records: int
    repaired_entries: int
    damaged_entries: int
    stored_offset: int
    protocol: bytes
    facts: _containers.RepeatedCompositeFieldContainer[ReplicaFact]
    facts_number: int
    orderer: str
    key_offset: int
    first_key: bytes
    reached_key: bytes
    passed_key: bytes
    def __init__(self, first_offset: _Optional[int] = ..., next_offset: _Optional[int] = ..., bytes: _Optional[int] = ..., position: _Optional[int] = ..., damaged_records: _Optional[int] = ..., repaired_entries: _Optional[int] = ..., damaged_entries: _Optional[int] = ..., stored_offset: _Optional[int] = ..., protocol: _Optional[bytes] = ..., facts: _Optional[_Iterable[_Union[ReplicaFact, _Mapping]]] = ..., facts_number: _Optional[int] = ..., orderer: _Optional[str] = ..., key_offset: _Optional[int] = ..., first_key: _Optional[bytes] = ..., reached_key: _Optional[bytes] = ..., passed_key: _Optional[bytes] = ...) -> None: ...

class ReadEntryRequest(_message.Message):
    __slots__ = ("group", "position")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    group: str
    position: int
    def __init__(self, group: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...

class ReadEntryResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: bytes
    def __init__(self, entry: _Optional[bytes] = ...) -> None: ...

class WaitingEnvelope(_message.Message):
    __slots__ = ("id", "domain", "groups", "stage", "waited_ms", "blocked_on")
    ID_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    WAITED_MS_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_ON_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    domain: str
    groups: _containers.RepeatedScalarFieldContainer[str]
    stage: str
    waited_ms: int
    blocked_on: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[bytes] = ..., domain: _Optional[str] = ..., groups: _Optional[_Iterable[str]] = ..., stage: _Optional[str] = ..., waited_ms: _Optional[int] = ..., blocked_on: _Optional[_Iterable[str]] = ...) -> None: ...
