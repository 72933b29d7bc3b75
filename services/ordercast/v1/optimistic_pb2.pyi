from ordercast.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Multicast(_message.Message):
    __slots__ = ("envelope", "source", "counter", "timestamp", "again", "bare", "pulled")
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    BARE_FIELD_NUMBER: _ClassVar[int]
    PULLED_FIELD_NUMBER: _ClassVar[int]
    envelope: _common_pb2.Envelope
    source: str
    counter: int
    timestamp: int
    again: bool
    bare: bool
    pulled: bool
    def __init__(self, envelope: _Optional[_Union[_common_pb2.Envelope, _Mapping]] = ..., source: _Optional[str] = ..., counter: _Optional[int] = ..., timestamp: _Optional[int] = ..., again: _Optional[bool] = ..., bare: _Optional[bool] = ..., pulled: _Optional[bool] = ...) -> None: ...

class MulticastPull(_message.Message):
    __slots__ = ("source", "ids")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    source: str
    ids: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, source: _Optional[str] = ..., ids: _Optional[_Iterable[bytes]] = ...) -> None: ...

class BarrierAsk(_message.Message):
    __slots__ = ("group", "key")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    group: str
    key: bytes
    def __init__(self, group: _Optional[str] = ..., key: _Optional[bytes] = ...) -> None: ...

class LogPosition(_message.Message):
    __slots__ = ("receiver", "configuration", "source", "position", "begins")
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    receiver: str
    configuration: int
    source: str
    position: int
    begins: bytes
    def __init__(self, receiver: _Optional[str] = ..., configuration: _Optional[int] = ..., source: _Optional[str] = ..., position: _Optional[int] = ..., begins: _Optional[bytes] = ...) -> None: ...

class LogPositions(_message.Message):
    __slots__ = ("positions",)
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    positions: _containers.RepeatedCompositeFieldContainer[LogPosition]
    def __init__(self, positions: _Optional[_Iterable[_Union[LogPosition, _Mapping]]] = ...) -> None: ...

class FollowFrom(_message.Message):
    __slots__ = ("source", "receiver", "state")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    source: str
    receiver: str
    state: SourceState
    def __init__(self, source: _Optional[str] = ..., receiver: _Optional[str] = ..., state: _Optional[_Union[SourceState, _Mapping]] = ...) -> None: ...

class PlacedEntry(_message.Message):
    __slots__ = ("id", "gateway", "counter", "timestamp", "destinations")
    ID_FIELD_NUMBER: _ClassVar[int]
    GATEWAY_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    DESTINATIONS_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    gateway: str
    counter: int
    timestamp: int
    destinations: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[bytes] = ..., gateway: _Optional[str] = ..., counter: _Optional[int] = ..., timestamp: _Optional[int] = ..., destinations: _Optional[_Iterable[str]] = ...) -> None: ...

class NullEntry(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    def __init__(self, key: _Optional[bytes] = ...) -> None: ...

class OverEntry(_message.Message):
    __slots__ = ("gateway", "incarnation")
    GATEWAY_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    gateway: str
    incarnation: int
    def __init__(self, gateway: _Optional[str] = ..., incarnation: _Optional[int] = ...) -> None: ...

class AddEntry(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class OpenEntry(_message.Message):
    __slots__ = ("group", "key")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    group: str
    key: bytes
    def __init__(self, group: _Optional[str] = ..., key: _Optional[bytes] = ...) -> None: ...

class SourceEntry(_message.Message):
    __slots__ = ("placed", "null", "over", "add", "open")
    PLACED_FIELD_NUMBER: _ClassVar[int]
    NULL_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    placed: PlacedEntry
    null: NullEntry
    over: OverEntry
    add: AddEntry
    open: OpenEntry
    def __init__(self, placed: _Optional[_Union[PlacedEntry, _Mapping]] = ..., null: _Optional[_Union[NullEntry, _Mapping]] = ..., over: _Optional[_Union[OverEntry, _Mapping]] = ..., add: _Optional[_Union[AddEntry, _Mapping]] = ..., open: _Optional[_Union[OpenEntry, _Mapping]] = ...) -> None: ...

class SourceEntries(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[SourceEntry]
    def __init__(self, entries: _Optional[_Iterable[_Union[SourceEntry, _Mapping]]] = ...) -> None: ...

class SenderState(_message.Message):
    __slots__ = ("gateway", "incarnation", "next", "over")
    GATEWAY_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    gateway: str
    incarnation: int
    next: int
    over: bool
    def __init__(self, gateway: _Optional[str] = ..., incarnation: _Optional[int] = ..., next: _Optional[int] = ..., over: _Optional[bool] = ...) -> None: ...

class AddedState(_message.Message):
    __slots__ = ("group", "key")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    group: str
    key: bytes
    def __init__(self, group: _Optional[str] = ..., key: _Optional[bytes] = ...) -> None: ...

class SourceState(_message.Message):
    __slots__ = ("next", "last", "senders", "configuration", "members", "receivers", "added")
    NEXT_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    SENDERS_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    RECEIVERS_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    next: int
    last: bytes
    senders: _containers.RepeatedCompositeFieldContainer[SenderState]
    configuration: int
    members: _containers.RepeatedScalarFieldContainer[str]
    receivers: _containers.RepeatedScalarFieldContainer[str]
    added: _containers.RepeatedCompositeFieldContainer[AddedState]
    def __init__(self, next: _Optional[int] = ..., last: _Optional[bytes] = ..., senders: _Optional[_Iterable[_Union[SenderState, _Mapping]]] = ..., configuration: _Optional[int] = ..., members: _Optional[_Iterable[str]] = ..., receivers: _Optional[_Iterable[str]] = ..., added: _Optional[_Iterable[_Union[AddedState, _Mapping]]] = ...) -> None: ...

class StampedKey(_message.Message):
    __slots__ = ("source", "instance")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    source: str
    instance: int
    def __init__(self, source: _Optional[str] = ..., instance: _Optional[int] = ...) -> None: ...

class FollowedRecord(_message.Message):
    __slots__ = ("state", "begins")
    STATE_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    state: SourceState
    begins: bytes
    def __init__(self, state: _Optional[_Union[SourceState, _Mapping]] = ..., begins: _Optional[bytes] = ...) -> None: ...
