from ordercast.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PublishStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUBLISH_STATUS_UNSPECIFIED: _ClassVar[PublishStatus]
    PUBLISH_STATUS_OK: _ClassVar[PublishStatus]
    PUBLISH_STATUS_INVALID_ARGUMENT: _ClassVar[PublishStatus]
    PUBLISH_STATUS_RESOURCE_EXHAUSTED: _ClassVar[PublishStatus]
    PUBLISH_STATUS_SEQUENCE_GAP: _ClassVar[PublishStatus]
    PUBLISH_STATUS_FENCED: _ClassVar[PublishStatus]
    PUBLISH_STATUS_UNAVAILABLE: _ClassVar[PublishStatus]
PUBLISH_STATUS_UNSPECIFIED: PublishStatus
PUBLISH_STATUS_OK: PublishStatus
PUBLISH_STATUS_INVALID_ARGUMENT: PublishStatus
PUBLISH_STATUS_RESOURCE_EXHAUSTED: PublishStatus
PUBLISH_STATUS_SEQUENCE_GAP: PublishStatus
PUBLISH_STATUS_FENCED: PublishStatus
PUBLISH_STATUS_UNAVAILABLE: PublishStatus

class PublishRequest(_message.Message):
    __slots__ = ("producer", "epoch", "groups", "first_sequence", "messages", "unordered", "session", "open_token", "trace")
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    UNORDERED_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    OPEN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    producer: bytes
    epoch: int
    groups: _containers.RepeatedScalarFieldContainer[str]
    first_sequence: int
    messages: _containers.RepeatedCompositeFieldContainer[_common_pb2.Message]
    unordered: bool
    session: bytes
    open_token: bytes
    trace: bytes
    def __init__(self, producer: _Optional[bytes] = ..., epoch: _Optional[int] = ..., groups: _Optional[_Iterable[str]] = ..., first_sequence: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[_common_pb2.Message, _Mapping]]] = ..., unordered: _Optional[bool] = ..., session: _Optional[bytes] = ..., open_token: _Optional[bytes] = ..., trace: _Optional[bytes] = ...) -> None: ...

class GroupOffset(_message.Message):
    __slots__ = ("group", "first_offset")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    group: str
    first_offset: int
    def __init__(self, group: _Optional[str] = ..., first_offset: _Optional[int] = ...) -> None: ...

class PublishReply(_message.Message):
    __slots__ = ("producer", "groups", "first_sequence", "count", "status", "detail", "order_key", "offsets", "duplicate", "epoch", "last_sequence", "session", "credits", "open_token")
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    OPEN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    producer: bytes
    groups: _containers.RepeatedScalarFieldContainer[str]
    first_sequence: int
    count: int
    status: PublishStatus
    detail: str
    order_key: bytes
    offsets: _containers.RepeatedCompositeFieldContainer[GroupOffset]
    duplicate: bool
    epoch: int
    last_sequence: int
    session: bytes
    credits: int
    open_token: bytes
    def __init__(self, producer: _Optional[bytes] = ..., groups: _Optional[_Iterable[str]] = ..., first_sequence: _Optional[int] = ..., count: _Optional[int] = ..., status: _Optional[_Union[PublishStatus, str]] = ..., detail: _Optional[str] = ..., order_key: _Optional[bytes] = ..., offsets: _Optional[_Iterable[_Union[GroupOffset, _Mapping]]] = ..., duplicate: _Optional[bool] = ..., epoch: _Optional[int] = ..., last_sequence: _Optional[int] = ..., session: _Optional[bytes] = ..., credits: _Optional[int] = ..., open_token: _Optional[bytes] = ...) -> None: ...
