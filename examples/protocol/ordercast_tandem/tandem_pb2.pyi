from ordercast.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Place(_message.Message):
    __slots__ = ("group", "position")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    group: str
    position: int
    def __init__(self, group: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...

class Numbered(_message.Message):
    __slots__ = ("number", "envelope", "places")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    number: int
    envelope: _common_pb2.Envelope
    places: _containers.RepeatedCompositeFieldContainer[Place]
    def __init__(self, number: _Optional[int] = ..., envelope: _Optional[_Union[_common_pb2.Envelope, _Mapping]] = ..., places: _Optional[_Iterable[_Union[Place, _Mapping]]] = ...) -> None: ...

class Keep(_message.Message):
    __slots__ = ("numbered", "floor")
    NUMBERED_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    numbered: Numbered
    floor: int
    def __init__(self, numbered: _Optional[_Union[Numbered, _Mapping]] = ..., floor: _Optional[int] = ...) -> None: ...

class Kept(_message.Message):
    __slots__ = ("next",)
    NEXT_FIELD_NUMBER: _ClassVar[int]
    next: int
    def __init__(self, next: _Optional[int] = ...) -> None: ...

class Ordered(_message.Message):
    __slots__ = ("numbered", "floor", "again")
    NUMBERED_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    numbered: Numbered
    floor: int
    again: bool
    def __init__(self, numbered: _Optional[_Union[Numbered, _Mapping]] = ..., floor: _Optional[int] = ..., again: _Optional[bool] = ...) -> None: ...

class Have(_message.Message):
    __slots__ = ("group", "position")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    group: str
    position: int
    def __init__(self, group: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...

class Unfinished(_message.Message):
    __slots__ = ("counters",)
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    counters: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, counters: _Optional[_Iterable[int]] = ...) -> None: ...
