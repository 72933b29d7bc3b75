from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class InjectRequest(_message.Message):
    __slots__ = ("deaf_to", "mute_to", "disk_delay_s", "fsync_fails", "answer_before_sync_s", "wall_offset_s")
    DEAF_TO_FIELD_NUMBER: _ClassVar[int]
    MUTE_TO_FIELD_NUMBER: _ClassVar[int]
    DISK_DELAY_S_FIELD_NUMBER: _ClassVar[int]
    FSYNC_FAILS_FIELD_NUMBER: _ClassVar[int]
    ANSWER_BEFORE_SYNC_S_FIELD_NUMBER: _ClassVar[int]
    WALL_OFFSET_S_FIELD_NUMBER: _ClassVar[int]
    deaf_to: _containers.RepeatedScalarFieldContainer[str]
    mute_to: _containers.RepeatedScalarFieldContainer[str]
    disk_delay_s: float
    fsync_fails: bool
    answer_before_sync_s: float
    wall_offset_s: float
    def __init__(self, deaf_to: _Optional[_Iterable[str]] = ..., mute_to: _Optional[_Iterable[str]] = ..., disk_delay_s: _Optional[float] = ..., fsync_fails: _Optional[bool] = ..., answer_before_sync_s: _Optional[float] = ..., wall_offset_s: _Optional[float] = ...) -> None: ...

class InjectResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
