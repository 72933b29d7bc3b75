from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Refusal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REFUSAL_UNSPECIFIED: _ClassVar[Refusal]
    REFUSAL_GAP: _ClassVar[Refusal]
    REFUSAL_FENCED: _ClassVar[Refusal]
REFUSAL_UNSPECIFIED: Refusal
REFUSAL_GAP: Refusal
REFUSAL_FENCED: Refusal

class Incarnation(_message.Message):
    __slots__ = ("process", "number")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    process: str
    number: int
    def __init__(self, process: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class Destination(_message.Message):
    __slots__ = ("group", "configuration")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ...) -> None: ...

class ProducerRange(_message.Message):
    __slots__ = ("producer", "epoch", "first_sequence", "count", "open_token", "client", "runs", "index")
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    OPEN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    producer: bytes
    epoch: int
    first_sequence: int
    count: int
    open_token: bytes
    client: bytes
    runs: _containers.RepeatedScalarFieldContainer[int]
    index: int
    def __init__(self, producer: _Optional[bytes] = ..., epoch: _Optional[int] = ..., first_sequence: _Optional[int] = ..., count: _Optional[int] = ..., open_token: _Optional[bytes] = ..., client: _Optional[bytes] = ..., runs: _Optional[_Iterable[int]] = ..., index: _Optional[int] = ...) -> None: ...

class Place(_message.Message):
    __slots__ = ("order_key", "index")
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    order_key: bytes
    index: int
    def __init__(self, order_key: _Optional[bytes] = ..., index: _Optional[int] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("id", "destinations", "coordinator", "session", "done", "ranges", "gateway", "trace", "open", "accepted_ns", "groups", "targets")
    ID_FIELD_NUMBER: _ClassVar[int]
    DESTINATIONS_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    GATEWAY_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_NS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    destinations: _containers.RepeatedCompositeFieldContainer[Destination]
    coordinator: Incarnation
    session: bytes
    done: int
    ranges: _containers.RepeatedCompositeFieldContainer[ProducerRange]
    gateway: str
    trace: bytes
    open: _containers.RepeatedScalarFieldContainer[int]
    accepted_ns: int
    groups: _containers.RepeatedScalarFieldContainer[str]
    targets: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, id: _Optional[bytes] = ..., destinations: _Optional[_Iterable[_Union[Destination, _Mapping]]] = ..., coordinator: _Optional[_Union[Incarnation, _Mapping]] = ..., session: _Optional[bytes] = ..., done: _Optional[int] = ..., ranges: _Optional[_Iterable[_Union[ProducerRange, _Mapping]]] = ..., gateway: _Optional[str] = ..., trace: _Optional[bytes] = ..., open: _Optional[_Iterable[int]] = ..., accepted_ns: _Optional[int] = ..., groups: _Optional[_Iterable[str]] = ..., targets: _Optional[_Iterable[int]] = ...) -> None: ...

class Envelope(_message.Message):
    __slots__ = ("header", "body")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    header: Header
    body: bytes
    def __init__(self, header: _Optional[_Union[Header, _Mapping]] = ..., body: _Optional[bytes] = ...) -> None: ...

class MessageField(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: bytes
    def __init__(self, name: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("payload", "headers", "key")
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    headers: _containers.RepeatedCompositeFieldContainer[MessageField]
    key: bytes
    def __init__(self, payload: _Optional[bytes] = ..., headers: _Optional[_Iterable[_Union[MessageField, _Mapping]]] = ..., key: _Optional[bytes] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    def __init__(self, messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ...) -> None: ...

class Span(_message.Message):
    __slots__ = ("first_sequence", "count", "first_offset", "order_key", "duplicate", "offsets", "runs")
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    first_sequence: int
    count: int
    first_offset: int
    order_key: bytes
    duplicate: bool
    offsets: _containers.RepeatedScalarFieldContainer[int]
    runs: bytes
    def __init__(self, first_sequence: _Optional[int] = ..., count: _Optional[int] = ..., first_offset: _Optional[int] = ..., order_key: _Optional[bytes] = ..., duplicate: _Optional[bool] = ..., offsets: _Optional[_Iterable[int]] = ..., runs: _Optional[bytes] = ...) -> None: ...

class RangeOutcome(_message.Message):
    __slots__ = ("spans", "refusal", "epoch", "last_sequence")
    SPANS_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    spans: _containers.RepeatedCompositeFieldContainer[Span]
    refusal: Refusal
    epoch: int
    last_sequence: int
    def __init__(self, spans: _Optional[_Iterable[_Union[Span, _Mapping]]] = ..., refusal: _Optional[_Union[Refusal, str]] = ..., epoch: _Optional[int] = ..., last_sequence: _Optional[int] = ...) -> None: ...
