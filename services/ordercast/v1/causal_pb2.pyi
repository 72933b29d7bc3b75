from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GroupTime(_message.Message):
    __slots__ = ("group", "view", "members", "counts")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    group: str
    view: int
    members: _containers.RepeatedScalarFieldContainer[int]
    counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, group: _Optional[str] = ..., view: _Optional[int] = ..., members: _Optional[_Iterable[int]] = ..., counts: _Optional[_Iterable[int]] = ...) -> None: ...

class Seen(_message.Message):
    __slots__ = ("times", "epoch", "carried", "open", "confirmed")
    TIMES_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CARRIED_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    times: _containers.RepeatedCompositeFieldContainer[GroupTime]
    epoch: int
    carried: _containers.RepeatedCompositeFieldContainer[GroupTime]
    open: _containers.RepeatedScalarFieldContainer[str]
    confirmed: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, times: _Optional[_Iterable[_Union[GroupTime, _Mapping]]] = ..., epoch: _Optional[int] = ..., carried: _Optional[_Iterable[_Union[GroupTime, _Mapping]]] = ..., open: _Optional[_Iterable[str]] = ..., confirmed: _Optional[_Iterable[str]] = ...) -> None: ...

class CastKey(_message.Message):
    __slots__ = ("member", "number")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    member: int
    number: int
    def __init__(self, member: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class CastStamp(_message.Message):
    __slots__ = ("view", "key", "times", "epoch", "total", "carried")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CARRIED_FIELD_NUMBER: _ClassVar[int]
    view: int
    key: CastKey
    times: _containers.RepeatedCompositeFieldContainer[GroupTime]
    epoch: int
    total: bool
    carried: _containers.RepeatedCompositeFieldContainer[GroupTime]
    def __init__(self, view: _Optional[int] = ..., key: _Optional[_Union[CastKey, _Mapping]] = ..., times: _Optional[_Iterable[_Union[GroupTime, _Mapping]]] = ..., epoch: _Optional[int] = ..., total: _Optional[bool] = ..., carried: _Optional[_Iterable[_Union[GroupTime, _Mapping]]] = ...) -> None: ...
