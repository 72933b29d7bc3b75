from ordercast.v1 import causal_pb2 as _causal_pb2
from ordercast.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union
from ordercast.v1.causal_pb2 import GroupTime as GroupTime
from ordercast.v1.causal_pb2 import Seen as Seen
from ordercast.v1.causal_pb2 import CastKey as CastKey
from ordercast.v1.causal_pb2 import CastStamp as CastStamp

DESCRIPTOR: _descriptor.FileDescriptor

class SyncedRow(_message.Message):
    __slots__ = ("counts", "positions")
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    counts: _containers.RepeatedScalarFieldContainer[int]
    positions: int
    def __init__(self, counts: _Optional[_Iterable[int]] = ..., positions: _Optional[int] = ...) -> None: ...

class Cast(_message.Message):
    __slots__ = ("group", "view", "key", "total", "times", "whole", "epoch", "position", "envelope", "row", "domain_view", "carried")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_VIEW_FIELD_NUMBER: _ClassVar[int]
    CARRIED_FIELD_NUMBER: _ClassVar[int]
    group: str
    view: int
    key: _causal_pb2.CastKey
    total: bool
    times: _containers.RepeatedCompositeFieldContainer[_causal_pb2.GroupTime]
    whole: bool
    epoch: int
    position: int
    envelope: _common_pb2.Envelope
    row: SyncedRow
    domain_view: int
    carried: _containers.RepeatedCompositeFieldContainer[_causal_pb2.GroupTime]
    def __init__(self, group: _Optional[str] = ..., view: _Optional[int] = ..., key: _Optional[_Union[_causal_pb2.CastKey, _Mapping]] = ..., total: _Optional[bool] = ..., times: _Optional[_Iterable[_Union[_causal_pb2.GroupTime, _Mapping]]] = ..., whole: _Optional[bool] = ..., epoch: _Optional[int] = ..., position: _Optional[int] = ..., envelope: _Optional[_Union[_common_pb2.Envelope, _Mapping]] = ..., row: _Optional[_Union[SyncedRow, _Mapping]] = ..., domain_view: _Optional[int] = ..., carried: _Optional[_Iterable[_Union[_causal_pb2.GroupTime, _Mapping]]] = ...) -> None: ...

class Stability(_message.Message):
    __slots__ = ("group", "view", "row")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    group: str
    view: int
    row: SyncedRow
    def __init__(self, group: _Optional[str] = ..., view: _Optional[int] = ..., row: _Optional[_Union[SyncedRow, _Mapping]] = ...) -> None: ...

class SetsOrder(_message.Message):
    __slots__ = ("group", "view", "first_position", "keys", "holder", "turn", "since")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    FIRST_POSITION_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    group: str
    view: int
    first_position: int
    keys: _containers.RepeatedCompositeFieldContainer[_causal_pb2.CastKey]
    holder: int
    turn: int
    since: int
    def __init__(self, group: _Optional[str] = ..., view: _Optional[int] = ..., first_position: _Optional[int] = ..., keys: _Optional[_Iterable[_Union[_causal_pb2.CastKey, _Mapping]]] = ..., holder: _Optional[int] = ..., turn: _Optional[int] = ..., since: _Optional[int] = ...) -> None: ...

class Resume(_message.Message):
    __slots__ = ("group", "view", "received", "positions")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    group: str
    view: int
    received: int
    positions: int
    def __init__(self, group: _Optional[str] = ..., view: _Optional[int] = ..., received: _Optional[int] = ..., positions: _Optional[int] = ...) -> None: ...

class EpochFlush(_message.Message):
    __slots__ = ("group", "view", "epoch", "sent")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    group: str
    view: int
    epoch: int
    sent: int
    def __init__(self, group: _Optional[str] = ..., view: _Optional[int] = ..., epoch: _Optional[int] = ..., sent: _Optional[int] = ...) -> None: ...

class Forward(_message.Message):
    __slots__ = ("view", "cast", "held")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    CAST_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    view: int
    cast: Cast
    held: Submit
    def __init__(self, view: _Optional[int] = ..., cast: _Optional[_Union[Cast, _Mapping]] = ..., held: _Optional[_Union[Submit, _Mapping]] = ...) -> None: ...

class Flush(_message.Message):
    __slots__ = ("group", "view", "ends", "behind", "received", "settled_counts", "settled", "positions", "keys", "epoch", "open", "confirmed")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    SETTLED_COUNTS_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    group: str
    view: int
    ends: int
    behind: bool
    received: _containers.RepeatedScalarFieldContainer[int]
    settled_counts: _containers.RepeatedScalarFieldContainer[int]
    settled: int
    positions: _containers.RepeatedScalarFieldContainer[int]
    keys: _containers.RepeatedCompositeFieldContainer[_causal_pb2.CastKey]
    epoch: int
    open: _containers.RepeatedScalarFieldContainer[bytes]
    confirmed: _causal_pb2.Seen
    def __init__(self, group: _Optional[str] = ..., view: _Optional[int] = ..., ends: _Optional[int] = ..., behind: _Optional[bool] = ..., received: _Optional[_Iterable[int]] = ..., settled_counts: _Optional[_Iterable[int]] = ..., settled: _Optional[int] = ..., positions: _Optional[_Iterable[int]] = ..., keys: _Optional[_Iterable[_Union[_causal_pb2.CastKey, _Mapping]]] = ..., epoch: _Optional[int] = ..., open: _Optional[_Iterable[bytes]] = ..., confirmed: _Optional[_Union[_causal_pb2.Seen, _Mapping]] = ...) -> None: ...

class Cut(_message.Message):
    __slots__ = ("group", "view", "ends", "first_position", "keys", "epoch", "open", "confirmed")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    FIRST_POSITION_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    group: str
    view: int
    ends: int
    first_position: int
    keys: _containers.RepeatedCompositeFieldContainer[_causal_pb2.CastKey]
    epoch: int
    open: _containers.RepeatedScalarFieldContainer[bytes]
    confirmed: _causal_pb2.Seen
    def __init__(self, group: _Optional[str] = ..., view: _Optional[int] = ..., ends: _Optional[int] = ..., first_position: _Optional[int] = ..., keys: _Optional[_Iterable[_Union[_causal_pb2.CastKey, _Mapping]]] = ..., epoch: _Optional[int] = ..., open: _Optional[_Iterable[bytes]] = ..., confirmed: _Optional[_Union[_causal_pb2.Seen, _Mapping]] = ...) -> None: ...

class CutSynced(_message.Message):
    __slots__ = ("group", "view")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    group: str
    view: int
    def __init__(self, group: _Optional[str] = ..., view: _Optional[int] = ...) -> None: ...

class Submit(_message.Message):
    __slots__ = ("group", "envelope", "total", "again", "origin", "stream", "index")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    group: str
    envelope: _common_pb2.Envelope
    total: bool
    again: bool
    origin: _causal_pb2.Seen
    stream: int
    index: int
    def __init__(self, group: _Optional[str] = ..., envelope: _Optional[_Union[_common_pb2.Envelope, _Mapping]] = ..., total: _Optional[bool] = ..., again: _Optional[bool] = ..., origin: _Optional[_Union[_causal_pb2.Seen, _Mapping]] = ..., stream: _Optional[int] = ..., index: _Optional[int] = ...) -> None: ...

class Part(_message.Message):
    __slots__ = ("group", "view", "key", "epoch")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    group: str
    view: int
    key: _causal_pb2.CastKey
    epoch: int
    def __init__(self, group: _Optional[str] = ..., view: _Optional[int] = ..., key: _Optional[_Union[_causal_pb2.CastKey, _Mapping]] = ..., epoch: _Optional[int] = ...) -> None: ...

class PartCast(_message.Message):
    __slots__ = ("id", "part")
    ID_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    part: Part
    def __init__(self, id: _Optional[bytes] = ..., part: _Optional[_Union[Part, _Mapping]] = ...) -> None: ...

class PartsCast(_message.Message):
    __slots__ = ("id", "group", "parts", "until", "confirmed")
    ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    group: str
    parts: _containers.RepeatedCompositeFieldContainer[Part]
    until: _causal_pb2.GroupTime
    confirmed: _causal_pb2.Seen
    def __init__(self, id: _Optional[bytes] = ..., group: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[Part, _Mapping]]] = ..., until: _Optional[_Union[_causal_pb2.GroupTime, _Mapping]] = ..., confirmed: _Optional[_Union[_causal_pb2.Seen, _Mapping]] = ...) -> None: ...

class Tell(_message.Message):
    __slots__ = ("number", "seen", "payload")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    number: int
    seen: _causal_pb2.Seen
    payload: bytes
    def __init__(self, number: _Optional[int] = ..., seen: _Optional[_Union[_causal_pb2.Seen, _Mapping]] = ..., payload: _Optional[bytes] = ...) -> None: ...

class TellAck(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class LogInView(_message.Message):
    __slots__ = ("view", "counts")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    view: int
    counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, view: _Optional[int] = ..., counts: _Optional[_Iterable[int]] = ...) -> None: ...

class IsisRecord(_message.Message):
    __slots__ = ("view", "position", "offset", "settled", "settled_counts")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    SETTLED_COUNTS_FIELD_NUMBER: _ClassVar[int]
    view: int
    position: int
    offset: int
    settled: int
    settled_counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, view: _Optional[int] = ..., position: _Optional[int] = ..., offset: _Optional[int] = ..., settled: _Optional[int] = ..., settled_counts: _Optional[_Iterable[int]] = ...) -> None: ...

class CutRecord(_message.Message):
    __slots__ = ("view", "ends", "first_position", "keys", "epoch")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    FIRST_POSITION_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    view: int
    ends: int
    first_position: int
    keys: _containers.RepeatedCompositeFieldContainer[_causal_pb2.CastKey]
    epoch: int
    def __init__(self, view: _Optional[int] = ..., ends: _Optional[int] = ..., first_position: _Optional[int] = ..., keys: _Optional[_Iterable[_Union[_causal_pb2.CastKey, _Mapping]]] = ..., epoch: _Optional[int] = ...) -> None: ...
