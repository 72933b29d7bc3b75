from ordercast.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RecTs(_message.Message):
    __slots__ = ("id", "rec_ts", "groups", "ask")
    ID_FIELD_NUMBER: _ClassVar[int]
    REC_TS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    rec_ts: int
    groups: _containers.RepeatedCompositeFieldContainer[_common_pb2.Destination]
    ask: bool
    def __init__(self, id: _Optional[bytes] = ..., rec_ts: _Optional[int] = ..., groups: _Optional[_Iterable[_Union[_common_pb2.Destination, _Mapping]]] = ..., ask: _Optional[bool] = ...) -> None: ...

class HistoryEntry(_message.Message):
    __slots__ = ("id", "rec_ts")
    ID_FIELD_NUMBER: _ClassVar[int]
    REC_TS_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    rec_ts: int
    def __init__(self, id: _Optional[bytes] = ..., rec_ts: _Optional[int] = ...) -> None: ...

class Gossip(_message.Message):
    __slots__ = ("group", "configuration", "base", "clock", "entries", "forgotten", "position", "advance")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ADVANCE_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    base: int
    clock: int
    entries: _containers.RepeatedCompositeFieldContainer[HistoryEntry]
    forgotten: bytes
    position: int
    advance: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., base: _Optional[int] = ..., clock: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[HistoryEntry, _Mapping]]] = ..., forgotten: _Optional[bytes] = ..., position: _Optional[int] = ..., advance: _Optional[int] = ...) -> None: ...

class GossipAsk(_message.Message):
    __slots__ = ("group", "configuration", "base")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    base: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., base: _Optional[int] = ...) -> None: ...

class Pull(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    def __init__(self, id: _Optional[bytes] = ...) -> None: ...

class Have(_message.Message):
    __slots__ = ("id", "groups")
    ID_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    groups: _containers.RepeatedCompositeFieldContainer[_common_pb2.Destination]
    def __init__(self, id: _Optional[bytes] = ..., groups: _Optional[_Iterable[_Union[_common_pb2.Destination, _Mapping]]] = ...) -> None: ...

class HaveAsk(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    def __init__(self, id: _Optional[bytes] = ...) -> None: ...

class HandOverAsk(_message.Message):
    __slots__ = ("group", "configuration", "after")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    after: bytes
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., after: _Optional[bytes] = ...) -> None: ...

class HandedOver(_message.Message):
    __slots__ = ("envelope", "rec_ts", "entry", "sn")
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    REC_TS_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    SN_FIELD_NUMBER: _ClassVar[int]
    envelope: _common_pb2.Envelope
    rec_ts: int
    entry: int
    sn: int
    def __init__(self, envelope: _Optional[_Union[_common_pb2.Envelope, _Mapping]] = ..., rec_ts: _Optional[int] = ..., entry: _Optional[int] = ..., sn: _Optional[int] = ...) -> None: ...

class HandOver(_message.Message):
    __slots__ = ("group", "configuration", "whole", "clock", "position", "envelopes", "after", "more", "idle")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    whole: bool
    clock: int
    position: int
    envelopes: _containers.RepeatedCompositeFieldContainer[HandedOver]
    after: bytes
    more: bool
    idle: bool
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., whole: _Optional[bool] = ..., clock: _Optional[int] = ..., position: _Optional[int] = ..., envelopes: _Optional[_Iterable[_Union[HandedOver, _Mapping]]] = ..., after: _Optional[bytes] = ..., more: _Optional[bool] = ..., idle: _Optional[bool] = ...) -> None: ...

class GroupStamp(_message.Message):
    __slots__ = ("group", "rec_ts", "entry")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    REC_TS_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    group: str
    rec_ts: int
    entry: int
    def __init__(self, group: _Optional[str] = ..., rec_ts: _Optional[int] = ..., entry: _Optional[int] = ...) -> None: ...

class StampedRecord(_message.Message):
    __slots__ = ("envelope", "rec_ts", "stamps")
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    REC_TS_FIELD_NUMBER: _ClassVar[int]
    STAMPS_FIELD_NUMBER: _ClassVar[int]
    envelope: _common_pb2.Envelope
    rec_ts: int
    stamps: _containers.RepeatedCompositeFieldContainer[GroupStamp]
    def __init__(self, envelope: _Optional[_Union[_common_pb2.Envelope, _Mapping]] = ..., rec_ts: _Optional[int] = ..., stamps: _Optional[_Iterable[_Union[GroupStamp, _Mapping]]] = ...) -> None: ...

class StartedRecord(_message.Message):
    __slots__ = ("configuration", "clock", "position", "is_kept")
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    IS_KEPT_FIELD_NUMBER: _ClassVar[int]
    configuration: int
    clock: int
    position: int
    is_kept: bool
    def __init__(self, configuration: _Optional[int] = ..., clock: _Optional[int] = ..., position: _Optional[int] = ..., is_kept: _Optional[bool] = ...) -> None: ...

class EnvelopeDecided(_message.Message):
    __slots__ = ("id", "order_key")
    ID_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    order_key: bytes
    def __init__(self, id: _Optional[bytes] = ..., order_key: _Optional[bytes] = ...) -> None: ...

class EnvelopeDurable(_message.Message):
    __slots__ = ("id", "group", "configuration")
    ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    group: str
    configuration: int
    def __init__(self, id: _Optional[bytes] = ..., group: _Optional[str] = ..., configuration: _Optional[int] = ...) -> None: ...
