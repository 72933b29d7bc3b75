from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Delivery(_message.Message):
    __slots__ = ("position", "envelope_id", "order_key", "first_offset", "messages", "published_ns", "delivered_ns", "begins")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_ID_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_NS_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_NS_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    position: int
    envelope_id: bytes
    order_key: bytes
    first_offset: int
    messages: int
    published_ns: int
    delivered_ns: int
    begins: bool
    def __init__(self, position: _Optional[int] = ..., envelope_id: _Optional[bytes] = ..., order_key: _Optional[bytes] = ..., first_offset: _Optional[int] = ..., messages: _Optional[int] = ..., published_ns: _Optional[int] = ..., delivered_ns: _Optional[int] = ..., begins: _Optional[bool] = ...) -> None: ...

class DeliveryBatch(_message.Message):
    __slots__ = ("deliveries",)
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[Delivery]
    def __init__(self, deliveries: _Optional[_Iterable[_Union[Delivery, _Mapping]]] = ...) -> None: ...

class KeepTraces(_message.Message):
    __slots__ = ("envelope_ids",)
    ENVELOPE_IDS_FIELD_NUMBER: _ClassVar[int]
    envelope_ids: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, envelope_ids: _Optional[_Iterable[bytes]] = ...) -> None: ...

class DescribeSpoolRequest(_message.Message):
    __slots__ = ("begin",)
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    begin: int
    def __init__(self, begin: _Optional[int] = ...) -> None: ...

class DescribeSpoolResponse(_message.Message):
    __slots__ = ("begin", "end", "taken", "schema_version", "segments", "spool_id")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    SPOOL_ID_FIELD_NUMBER: _ClassVar[int]
    begin: int
    end: int
    taken: int
    schema_version: int
    segments: _containers.RepeatedScalarFieldContainer[int]
    spool_id: str
    def __init__(self, begin: _Optional[int] = ..., end: _Optional[int] = ..., taken: _Optional[int] = ..., schema_version: _Optional[int] = ..., segments: _Optional[_Iterable[int]] = ..., spool_id: _Optional[str] = ...) -> None: ...

class ReadSpoolRequest(_message.Message):
    __slots__ = ("begin", "end")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    begin: int
    end: int
    def __init__(self, begin: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class ReadSpoolResponse(_message.Message):
    __slots__ = ("arrow",)
    ARROW_FIELD_NUMBER: _ClassVar[int]
    arrow: bytes
    def __init__(self, arrow: _Optional[bytes] = ...) -> None: ...
