from ordercast.v1 import causal_pb2 as _causal_pb2
from ordercast.v1 import common_pb2 as _common_pb2
from ordercast.v1 import sequencer_pb2 as _sequencer_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DagMessage(_message.Message):
    __slots__ = ("view", "key", "vector", "agreed", "id", "groups", "envelope")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    AGREED_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    view: int
    key: _causal_pb2.CastKey
    vector: _containers.RepeatedScalarFieldContainer[int]
    agreed: bool
    id: bytes
    groups: _containers.RepeatedScalarFieldContainer[str]
    envelope: _common_pb2.Envelope
    def __init__(self, view: _Optional[int] = ..., key: _Optional[_Union[_causal_pb2.CastKey, _Mapping]] = ..., vector: _Optional[_Iterable[int]] = ..., agreed: _Optional[bool] = ..., id: _Optional[bytes] = ..., groups: _Optional[_Iterable[str]] = ..., envelope: _Optional[_Union[_common_pb2.Envelope, _Mapping]] = ...) -> None: ...

class DagResume(_message.Message):
    __slots__ = ("view", "received")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    view: int
    received: int
    def __init__(self, view: _Optional[int] = ..., received: _Optional[int] = ...) -> None: ...

class DagSynced(_message.Message):
    __slots__ = ("view", "number")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    view: int
    number: int
    def __init__(self, view: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class DagForward(_message.Message):
    __slots__ = ("view", "message")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    view: int
    message: DagMessage
    def __init__(self, view: _Optional[int] = ..., message: _Optional[_Union[DagMessage, _Mapping]] = ...) -> None: ...

class DagFlush(_message.Message):
    __slots__ = ("view", "ends", "received", "settled", "bodies")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    BODIES_FIELD_NUMBER: _ClassVar[int]
    view: int
    ends: int
    received: _containers.RepeatedScalarFieldContainer[int]
    settled: _containers.RepeatedScalarFieldContainer[int]
    bodies: _containers.RepeatedCompositeFieldContainer[_causal_pb2.CastKey]
    def __init__(self, view: _Optional[int] = ..., ends: _Optional[int] = ..., received: _Optional[_Iterable[int]] = ..., settled: _Optional[_Iterable[int]] = ..., bodies: _Optional[_Iterable[_Union[_causal_pb2.CastKey, _Mapping]]] = ...) -> None: ...

class DagCutSynced(_message.Message):
    __slots__ = ("view",)
    VIEW_FIELD_NUMBER: _ClassVar[int]
    view: int
    def __init__(self, view: _Optional[int] = ...) -> None: ...

class DagBeginAsk(_message.Message):
    __slots__ = ("view",)
    VIEW_FIELD_NUMBER: _ClassVar[int]
    view: int
    def __init__(self, view: _Optional[int] = ...) -> None: ...

class DagBegin(_message.Message):
    __slots__ = ("view", "index", "groups", "positions")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    view: int
    index: int
    groups: _containers.RepeatedScalarFieldContainer[str]
    positions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, view: _Optional[int] = ..., index: _Optional[int] = ..., groups: _Optional[_Iterable[str]] = ..., positions: _Optional[_Iterable[int]] = ...) -> None: ...

class DagLogAsk(_message.Message):
    __slots__ = ("group", "position")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    group: str
    position: int
    def __init__(self, group: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...

class DagLog(_message.Message):
    __slots__ = ("group", "position", "entries")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    group: str
    position: int
    entries: _containers.RepeatedCompositeFieldContainer[_sequencer_pb2.LogEntry]
    def __init__(self, group: _Optional[str] = ..., position: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[_sequencer_pb2.LogEntry, _Mapping]]] = ...) -> None: ...

class DagReportAgain(_message.Message):
    __slots__ = ("group", "position")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    group: str
    position: int
    def __init__(self, group: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...

class DagUnfinished(_message.Message):
    __slots__ = ("counters",)
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    counters: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, counters: _Optional[_Iterable[int]] = ...) -> None: ...

class DagHave(_message.Message):
    __slots__ = ("groups", "positions", "asked_from")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    ASKED_FROM_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedScalarFieldContainer[str]
    positions: _containers.RepeatedScalarFieldContainer[int]
    asked_from: int
    def __init__(self, groups: _Optional[_Iterable[str]] = ..., positions: _Optional[_Iterable[int]] = ..., asked_from: _Optional[int] = ...) -> None: ...

class DagRecord(_message.Message):
    __slots__ = ("view", "members", "begin", "settled", "delivered", "activations", "index", "groups", "positions", "queue")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    ACTIVATIONS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    view: int
    members: _containers.RepeatedScalarFieldContainer[str]
    begin: DagBegin
    settled: _containers.RepeatedScalarFieldContainer[int]
    delivered: _containers.RepeatedScalarFieldContainer[int]
    activations: int
    index: int
    groups: _containers.RepeatedScalarFieldContainer[str]
    positions: _containers.RepeatedScalarFieldContainer[int]
    queue: _containers.RepeatedCompositeFieldContainer[_causal_pb2.CastKey]
    def __init__(self, view: _Optional[int] = ..., members: _Optional[_Iterable[str]] = ..., begin: _Optional[_Union[DagBegin, _Mapping]] = ..., settled: _Optional[_Iterable[int]] = ..., delivered: _Optional[_Iterable[int]] = ..., activations: _Optional[int] = ..., index: _Optional[int] = ..., groups: _Optional[_Iterable[str]] = ..., positions: _Optional[_Iterable[int]] = ..., queue: _Optional[_Iterable[_Union[_causal_pb2.CastKey, _Mapping]]] = ...) -> None: ...

class DagCut(_message.Message):
    __slots__ = ("view", "ends", "counts", "voids")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    VOIDS_FIELD_NUMBER: _ClassVar[int]
    view: int
    ends: int
    counts: _containers.RepeatedScalarFieldContainer[int]
    voids: _containers.RepeatedCompositeFieldContainer[_causal_pb2.CastKey]
    def __init__(self, view: _Optional[int] = ..., ends: _Optional[int] = ..., counts: _Optional[_Iterable[int]] = ..., voids: _Optional[_Iterable[_Union[_causal_pb2.CastKey, _Mapping]]] = ...) -> None: ...
