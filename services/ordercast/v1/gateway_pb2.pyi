from ordercast.v1 import common_pb2 as _common_pb2
from ordercast.v1 import membership_pb2 as _membership_pb2
from ordercast.v1 import sequencer_pb2 as _sequencer_pb2
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
    PUBLISH_STATUS_NOT_FOUND: _ClassVar[PublishStatus]
    PUBLISH_STATUS_MOVED: _ClassVar[PublishStatus]
PUBLISH_STATUS_UNSPECIFIED: PublishStatus
PUBLISH_STATUS_OK: PublishStatus
PUBLISH_STATUS_INVALID_ARGUMENT: PublishStatus
PUBLISH_STATUS_RESOURCE_EXHAUSTED: PublishStatus
PUBLISH_STATUS_SEQUENCE_GAP: PublishStatus
PUBLISH_STATUS_FENCED: PublishStatus
PUBLISH_STATUS_UNAVAILABLE: PublishStatus
PUBLISH_STATUS_NOT_FOUND: PublishStatus
PUBLISH_STATUS_MOVED: PublishStatus

class PublishRequest(_message.Message):
    __slots__ = ("producer", "epoch", "groups", "first_sequence", "messages", "unordered", "session", "open_token", "trace", "cells", "batch", "count", "targets", "runs")
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    UNORDERED_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    OPEN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    producer: bytes
    epoch: int
    groups: _containers.RepeatedScalarFieldContainer[str]
    first_sequence: int
    messages: _containers.RepeatedCompositeFieldContainer[_common_pb2.Message]
    unordered: bool
    session: bytes
    open_token: bytes
    trace: bytes
    cells: _containers.RepeatedScalarFieldContainer[str]
    batch: bytes
    count: int
    targets: _containers.RepeatedScalarFieldContainer[int]
    runs: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, producer: _Optional[bytes] = ..., epoch: _Optional[int] = ..., groups: _Optional[_Iterable[str]] = ..., first_sequence: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[_common_pb2.Message, _Mapping]]] = ..., unordered: _Optional[bool] = ..., session: _Optional[bytes] = ..., open_token: _Optional[bytes] = ..., trace: _Optional[bytes] = ..., cells: _Optional[_Iterable[str]] = ..., batch: _Optional[bytes] = ..., count: _Optional[int] = ..., targets: _Optional[_Iterable[int]] = ..., runs: _Optional[_Iterable[int]] = ...) -> None: ...

class GroupOffset(_message.Message):
    __slots__ = ("group", "first_offset")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    group: str
    first_offset: int
    def __init__(self, group: _Optional[str] = ..., first_offset: _Optional[int] = ...) -> None: ...

class PublishReply(_message.Message):
    __slots__ = ("producer", "groups", "first_sequence", "count", "status", "detail", "order_key", "offsets", "duplicate", "epoch", "last_sequence", "session", "credits", "open_token", "retry_after_ms", "cells", "bases")
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
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    BASES_FIELD_NUMBER: _ClassVar[int]
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
    retry_after_ms: int
    cells: _containers.RepeatedScalarFieldContainer[str]
    bases: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, producer: _Optional[bytes] = ..., groups: _Optional[_Iterable[str]] = ..., first_sequence: _Optional[int] = ..., count: _Optional[int] = ..., status: _Optional[_Union[PublishStatus, str]] = ..., detail: _Optional[str] = ..., order_key: _Optional[bytes] = ..., offsets: _Optional[_Iterable[_Union[GroupOffset, _Mapping]]] = ..., duplicate: _Optional[bool] = ..., epoch: _Optional[int] = ..., last_sequence: _Optional[int] = ..., session: _Optional[bytes] = ..., credits: _Optional[int] = ..., open_token: _Optional[bytes] = ..., retry_after_ms: _Optional[int] = ..., cells: _Optional[_Iterable[str]] = ..., bases: _Optional[_Iterable[int]] = ...) -> None: ...

class PublishResponse(_message.Message):
    __slots__ = ("replies",)
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[PublishReply]
    def __init__(self, replies: _Optional[_Iterable[_Union[PublishReply, _Mapping]]] = ...) -> None: ...

class PublishStreamRequest(_message.Message):
    __slots__ = ("requests", "locate")
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    LOCATE_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[PublishRequest]
    locate: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, requests: _Optional[_Iterable[_Union[PublishRequest, _Mapping]]] = ..., locate: _Optional[_Iterable[str]] = ...) -> None: ...

class GroupPlace(_message.Message):
    __slots__ = ("group", "cell")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CELL_FIELD_NUMBER: _ClassVar[int]
    group: str
    cell: str
    def __init__(self, group: _Optional[str] = ..., cell: _Optional[str] = ...) -> None: ...

class PublishStreamResponse(_message.Message):
    __slots__ = ("replies", "credits", "owner", "locates", "places", "batches")
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    LOCATES_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[PublishReply]
    credits: int
    owner: bytes
    locates: bool
    places: _containers.RepeatedCompositeFieldContainer[GroupPlace]
    batches: bool
    def __init__(self, replies: _Optional[_Iterable[_Union[PublishReply, _Mapping]]] = ..., credits: _Optional[int] = ..., owner: _Optional[bytes] = ..., locates: _Optional[bool] = ..., places: _Optional[_Iterable[_Union[GroupPlace, _Mapping]]] = ..., batches: _Optional[bool] = ...) -> None: ...

class SubscribeStart(_message.Message):
    __slots__ = ("group", "start", "cursor", "stop_at_end", "replica", "alive", "groups", "domain", "pattern", "place", "until")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    STOP_AT_END_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    group: str
    start: _sequencer_pb2.StartAt
    cursor: str
    stop_at_end: bool
    replica: str
    alive: bool
    groups: _containers.RepeatedScalarFieldContainer[str]
    domain: str
    pattern: str
    place: _common_pb2.Place
    until: _common_pb2.Place
    def __init__(self, group: _Optional[str] = ..., start: _Optional[_Union[_sequencer_pb2.StartAt, _Mapping]] = ..., cursor: _Optional[str] = ..., stop_at_end: _Optional[bool] = ..., replica: _Optional[str] = ..., alive: _Optional[bool] = ..., groups: _Optional[_Iterable[str]] = ..., domain: _Optional[str] = ..., pattern: _Optional[str] = ..., place: _Optional[_Union[_common_pb2.Place, _Mapping]] = ..., until: _Optional[_Union[_common_pb2.Place, _Mapping]] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("offset", "place")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    offset: int
    place: _common_pb2.Place
    def __init__(self, offset: _Optional[int] = ..., place: _Optional[_Union[_common_pb2.Place, _Mapping]] = ...) -> None: ...

class SubscribeRequest(_message.Message):
    __slots__ = ("start", "ack")
    START_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    start: SubscribeStart
    ack: Ack
    def __init__(self, start: _Optional[_Union[SubscribeStart, _Mapping]] = ..., ack: _Optional[_Union[Ack, _Mapping]] = ...) -> None: ...

class SubscribeStarted(_message.Message):
    __slots__ = ("offset", "group_id", "place", "until", "groups", "domain")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    offset: int
    group_id: str
    place: _common_pb2.Place
    until: _common_pb2.Place
    groups: _containers.RepeatedScalarFieldContainer[str]
    domain: str
    def __init__(self, offset: _Optional[int] = ..., group_id: _Optional[str] = ..., place: _Optional[_Union[_common_pb2.Place, _Mapping]] = ..., until: _Optional[_Union[_common_pb2.Place, _Mapping]] = ..., groups: _Optional[_Iterable[str]] = ..., domain: _Optional[str] = ...) -> None: ...

class Deliveries(_message.Message):
    __slots__ = ("entries", "session", "stored_ms")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    STORED_MS_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedScalarFieldContainer[bytes]
    session: bytes
    stored_ms: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, entries: _Optional[_Iterable[bytes]] = ..., session: _Optional[bytes] = ..., stored_ms: _Optional[_Iterable[int]] = ...) -> None: ...

class MergedEntry(_message.Message):
    __slots__ = ("groups", "entries", "stored_ms")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    STORED_MS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedScalarFieldContainer[int]
    entries: _containers.RepeatedScalarFieldContainer[bytes]
    stored_ms: int
    def __init__(self, groups: _Optional[_Iterable[int]] = ..., entries: _Optional[_Iterable[bytes]] = ..., stored_ms: _Optional[int] = ...) -> None: ...

class MergedDeliveries(_message.Message):
    __slots__ = ("entries", "session")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[MergedEntry]
    session: bytes
    def __init__(self, entries: _Optional[_Iterable[_Union[MergedEntry, _Mapping]]] = ..., session: _Optional[bytes] = ...) -> None: ...

class Waiting(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, groups: _Optional[_Iterable[str]] = ...) -> None: ...

class Acked(_message.Message):
    __slots__ = ("offset", "place")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    offset: int
    place: _common_pb2.Place
    def __init__(self, offset: _Optional[int] = ..., place: _Optional[_Union[_common_pb2.Place, _Mapping]] = ...) -> None: ...

class Alive(_message.Message):
    __slots__ = ("alive_ms",)
    ALIVE_MS_FIELD_NUMBER: _ClassVar[int]
    alive_ms: int
    def __init__(self, alive_ms: _Optional[int] = ...) -> None: ...

class SubscribeResponse(_message.Message):
    __slots__ = ("started", "deliveries", "acked", "alive", "merged", "waiting")
    STARTED_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    ACKED_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    MERGED_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    started: SubscribeStarted
    deliveries: Deliveries
    acked: Acked
    alive: Alive
    merged: MergedDeliveries
    waiting: Waiting
    def __init__(self, started: _Optional[_Union[SubscribeStarted, _Mapping]] = ..., deliveries: _Optional[_Union[Deliveries, _Mapping]] = ..., acked: _Optional[_Union[Acked, _Mapping]] = ..., alive: _Optional[_Union[Alive, _Mapping]] = ..., merged: _Optional[_Union[MergedDeliveries, _Mapping]] = ..., waiting: _Optional[_Union[Waiting, _Mapping]] = ...) -> None: ...

class CutRequest(_message.Message):
    __slots__ = ("groups", "domain", "pattern")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedScalarFieldContainer[str]
    domain: str
    pattern: str
    def __init__(self, groups: _Optional[_Iterable[str]] = ..., domain: _Optional[str] = ..., pattern: _Optional[str] = ...) -> None: ...

class CutResponse(_message.Message):
    __slots__ = ("place",)
    PLACE_FIELD_NUMBER: _ClassVar[int]
    place: _common_pb2.Place
    def __init__(self, place: _Optional[_Union[_common_pb2.Place, _Mapping]] = ...) -> None: ...

class SubscribeLiveRequest(_message.Message):
    __slots__ = ("group", "replica", "alive")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    group: str
    replica: str
    alive: bool
    def __init__(self, group: _Optional[str] = ..., replica: _Optional[str] = ..., alive: _Optional[bool] = ...) -> None: ...

class SubscribeLiveResponse(_message.Message):
    __slots__ = ("entries", "session", "group_id", "replica", "alive_ms")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    ALIVE_MS_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedScalarFieldContainer[bytes]
    session: bytes
    group_id: str
    replica: str
    alive_ms: int
    def __init__(self, entries: _Optional[_Iterable[bytes]] = ..., session: _Optional[bytes] = ..., group_id: _Optional[str] = ..., replica: _Optional[str] = ..., alive_ms: _Optional[int] = ...) -> None: ...

class CreateDomainRequest(_message.Message):
    __slots__ = ("name", "protocol", "settings")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    protocol: str
    settings: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., protocol: _Optional[str] = ..., settings: _Optional[_Mapping[str, str]] = ...) -> None: ...

class CreateDomainResponse(_message.Message):
    __slots__ = ("domain",)
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    domain: _membership_pb2.Domain
    def __init__(self, domain: _Optional[_Union[_membership_pb2.Domain, _Mapping]] = ...) -> None: ...

class ListDomainsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListDomainsResponse(_message.Message):
    __slots__ = ("domains",)
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    domains: _containers.RepeatedCompositeFieldContainer[_membership_pb2.Domain]
    def __init__(self, domains: _Optional[_Iterable[_Union[_membership_pb2.Domain, _Mapping]]] = ...) -> None: ...

class CreateGroupRequest(_message.Message):
    __slots__ = ("name", "domain", "replicas", "retention", "settings", "own_cell", "beside", "shared", "new_cell")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    OWN_CELL_FIELD_NUMBER: _ClassVar[int]
    BESIDE_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    NEW_CELL_FIELD_NUMBER: _ClassVar[int]
    name: str
    domain: str
    replicas: int
    retention: _membership_pb2.Retention
    settings: _containers.ScalarMap[str, str]
    own_cell: bool
    beside: str
    shared: bool
    new_cell: bool
    def __init__(self, name: _Optional[str] = ..., domain: _Optional[str] = ..., replicas: _Optional[int] = ..., retention: _Optional[_Union[_membership_pb2.Retention, _Mapping]] = ..., settings: _Optional[_Mapping[str, str]] = ..., own_cell: _Optional[bool] = ..., beside: _Optional[str] = ..., shared: _Optional[bool] = ..., new_cell: _Optional[bool] = ...) -> None: ...

class CreateGroupResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: _membership_pb2.Group
    def __init__(self, group: _Optional[_Union[_membership_pb2.Group, _Mapping]] = ...) -> None: ...

class UpdateGroupRequest(_message.Message):
    __slots__ = ("name", "retention")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    retention: _membership_pb2.Retention
    def __init__(self, name: _Optional[str] = ..., retention: _Optional[_Union[_membership_pb2.Retention, _Mapping]] = ...) -> None: ...

class UpdateGroupResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: _membership_pb2.Group
    def __init__(self, group: _Optional[_Union[_membership_pb2.Group, _Mapping]] = ...) -> None: ...

class CreateGroupsRequest(_message.Message):
    __slots__ = ("like", "names", "exist_ok")
    LIKE_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    EXIST_OK_FIELD_NUMBER: _ClassVar[int]
    like: CreateGroupRequest
    names: _containers.RepeatedScalarFieldContainer[str]
    exist_ok: bool
    def __init__(self, like: _Optional[_Union[CreateGroupRequest, _Mapping]] = ..., names: _Optional[_Iterable[str]] = ..., exist_ok: _Optional[bool] = ...) -> None: ...

class CreateGroupsResponse(_message.Message):
    __slots__ = ("created",)
    CREATED_FIELD_NUMBER: _ClassVar[int]
    created: int
    def __init__(self, created: _Optional[int] = ...) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ("domain", "after", "limit", "prefix")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    domain: str
    after: str
    limit: int
    prefix: str
    def __init__(self, domain: _Optional[str] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ..., prefix: _Optional[str] = ...) -> None: ...

class ListGroupsResponse(_message.Message):
    __slots__ = ("groups", "more")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[_membership_pb2.Group]
    more: bool
    def __init__(self, groups: _Optional[_Iterable[_Union[_membership_pb2.Group, _Mapping]]] = ..., more: _Optional[bool] = ...) -> None: ...

class DescribeGroupRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ReplicaStatus(_message.Message):
    __slots__ = ("node", "error", "log")
    NODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    node: str
    error: str
    log: _sequencer_pb2.DescribeReplicaResponse
    def __init__(self, node: _Optional[str] = ..., error: _Optional[str] = ..., log: _Optional[_Union[_sequencer_pb2.DescribeReplicaResponse, _Mapping]] = ...) -> None: ...

class DescribeGroupResponse(_message.Message):
    __slots__ = ("group", "replicas", "learners")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LEARNERS_FIELD_NUMBER: _ClassVar[int]
    group: _membership_pb2.Group
    replicas: _containers.RepeatedCompositeFieldContainer[ReplicaStatus]
    learners: _containers.RepeatedCompositeFieldContainer[ReplicaStatus]
    def __init__(self, group: _Optional[_Union[_membership_pb2.Group, _Mapping]] = ..., replicas: _Optional[_Iterable[_Union[ReplicaStatus, _Mapping]]] = ..., learners: _Optional[_Iterable[_Union[ReplicaStatus, _Mapping]]] = ...) -> None: ...

class DeleteGroupRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteGroupResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: _membership_pb2.Group
    def __init__(self, group: _Optional[_Union[_membership_pb2.Group, _Mapping]] = ...) -> None: ...

class ListCursorsRequest(_message.Message):
    __slots__ = ("group", "name", "lags", "domain")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LAGS_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    group: str
    name: str
    lags: bool
    domain: str
    def __init__(self, group: _Optional[str] = ..., name: _Optional[str] = ..., lags: _Optional[bool] = ..., domain: _Optional[str] = ...) -> None: ...

class CursorLag(_message.Message):
    __slots__ = ("messages", "age_ms")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    messages: int
    age_ms: int
    def __init__(self, messages: _Optional[int] = ..., age_ms: _Optional[int] = ...) -> None: ...

class ListCursorsResponse(_message.Message):
    __slots__ = ("cursors", "lags")
    CURSORS_FIELD_NUMBER: _ClassVar[int]
    LAGS_FIELD_NUMBER: _ClassVar[int]
    cursors: _containers.RepeatedCompositeFieldContainer[_membership_pb2.Cursor]
    lags: _containers.RepeatedCompositeFieldContainer[CursorLag]
    def __init__(self, cursors: _Optional[_Iterable[_Union[_membership_pb2.Cursor, _Mapping]]] = ..., lags: _Optional[_Iterable[_Union[CursorLag, _Mapping]]] = ...) -> None: ...

class SetCursorRequest(_message.Message):
    __slots__ = ("group", "name", "start", "domain", "place")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    group: str
    name: str
    start: _sequencer_pb2.StartAt
    domain: str
    place: _common_pb2.Place
    def __init__(self, group: _Optional[str] = ..., name: _Optional[str] = ..., start: _Optional[_Union[_sequencer_pb2.StartAt, _Mapping]] = ..., domain: _Optional[str] = ..., place: _Optional[_Union[_common_pb2.Place, _Mapping]] = ...) -> None: ...

class SetCursorResponse(_message.Message):
    __slots__ = ("cursor",)
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    cursor: _membership_pb2.Cursor
    def __init__(self, cursor: _Optional[_Union[_membership_pb2.Cursor, _Mapping]] = ...) -> None: ...

class DeleteCursorRequest(_message.Message):
    __slots__ = ("group", "name", "domain")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    group: str
    name: str
    domain: str
    def __init__(self, group: _Optional[str] = ..., name: _Optional[str] = ..., domain: _Optional[str] = ...) -> None: ...

class DeleteCursorResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeClusterRequest(_message.Message):
    __slots__ = ("shared_groups",)
    SHARED_GROUPS_FIELD_NUMBER: _ClassVar[int]
    shared_groups: bool
    def __init__(self, shared_groups: _Optional[bool] = ...) -> None: ...

class DescribeClusterResponse(_message.Message):
    __slots__ = ("cluster_id", "revision", "nodes", "domains", "groups", "gateway", "level", "cells")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    GATEWAY_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    revision: int
    nodes: _containers.RepeatedCompositeFieldContainer[_membership_pb2.Node]
    domains: _containers.RepeatedCompositeFieldContainer[_membership_pb2.Domain]
    groups: _containers.RepeatedCompositeFieldContainer[_membership_pb2.Group]
    gateway: str
    level: int
    cells: _containers.RepeatedCompositeFieldContainer[Cell]
    def __init__(self, cluster_id: _Optional[bytes] = ..., revision: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[_membership_pb2.Node, _Mapping]]] = ..., domains: _Optional[_Iterable[_Union[_membership_pb2.Domain, _Mapping]]] = ..., groups: _Optional[_Iterable[_Union[_membership_pb2.Group, _Mapping]]] = ..., gateway: _Optional[str] = ..., level: _Optional[int] = ..., cells: _Optional[_Iterable[_Union[Cell, _Mapping]]] = ...) -> None: ...

class Cell(_message.Message):
    __slots__ = ("cell", "groups")
    CELL_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    cell: _membership_pb2.Group
    groups: int
    def __init__(self, cell: _Optional[_Union[_membership_pb2.Group, _Mapping]] = ..., groups: _Optional[int] = ...) -> None: ...

class ListCellsRequest(_message.Message):
    __slots__ = ("domain",)
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    domain: str
    def __init__(self, domain: _Optional[str] = ...) -> None: ...

class ListCellsResponse(_message.Message):
    __slots__ = ("cells",)
    CELLS_FIELD_NUMBER: _ClassVar[int]
    cells: _containers.RepeatedCompositeFieldContainer[Cell]
    def __init__(self, cells: _Optional[_Iterable[_Union[Cell, _Mapping]]] = ...) -> None: ...

class DescribeCellRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DescribeCellResponse(_message.Message):
    __slots__ = ("cell", "replicas", "learners", "groups")
    CELL_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LEARNERS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    cell: Cell
    replicas: _containers.RepeatedCompositeFieldContainer[ReplicaStatus]
    learners: _containers.RepeatedCompositeFieldContainer[ReplicaStatus]
    groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, cell: _Optional[_Union[Cell, _Mapping]] = ..., replicas: _Optional[_Iterable[_Union[ReplicaStatus, _Mapping]]] = ..., learners: _Optional[_Iterable[_Union[ReplicaStatus, _Mapping]]] = ..., groups: _Optional[_Iterable[str]] = ...) -> None: ...

class ChangeReplicasRequest(_message.Message):
    __slots__ = ("group", "change", "node", "to", "request_id")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    group: str
    change: _membership_pb2.ReplicaChange
    node: str
    to: str
    request_id: bytes
    def __init__(self, group: _Optional[str] = ..., change: _Optional[_Union[_membership_pb2.ReplicaChange, str]] = ..., node: _Optional[str] = ..., to: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class ChangeReplicasResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: _membership_pb2.Group
    def __init__(self, group: _Optional[_Union[_membership_pb2.Group, _Mapping]] = ...) -> None: ...

class CancelChangeRequest(_message.Message):
    __slots__ = ("group", "request_id")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    group: str
    request_id: bytes
    def __init__(self, group: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class CancelChangeResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: _membership_pb2.Group
    def __init__(self, group: _Optional[_Union[_membership_pb2.Group, _Mapping]] = ...) -> None: ...

class DrainNodeRequest(_message.Message):
    __slots__ = ("node", "draining")
    NODE_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    node: str
    draining: bool
    def __init__(self, node: _Optional[str] = ..., draining: _Optional[bool] = ...) -> None: ...

class DrainNodeResponse(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: _membership_pb2.Node
    def __init__(self, node: _Optional[_Union[_membership_pb2.Node, _Mapping]] = ...) -> None: ...

class RemoveNodeRequest(_message.Message):
    __slots__ = ("node", "request_id")
    NODE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    node: str
    request_id: bytes
    def __init__(self, node: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class RemoveNodeResponse(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: _membership_pb2.Node
    def __init__(self, node: _Optional[_Union[_membership_pb2.Node, _Mapping]] = ...) -> None: ...

class GiveUpDiskRequest(_message.Message):
    __slots__ = ("node", "request_id")
    NODE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    node: str
    request_id: bytes
    def __init__(self, node: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class GiveUpDiskResponse(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: _membership_pb2.Node
    def __init__(self, node: _Optional[_Union[_membership_pb2.Node, _Mapping]] = ...) -> None: ...

class PlanRebalanceRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReplicaMove(_message.Message):
    __slots__ = ("group", "node", "to", "why")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    group: str
    node: str
    to: str
    why: str
    def __init__(self, group: _Optional[str] = ..., node: _Optional[str] = ..., to: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class PlanRebalanceResponse(_message.Message):
    __slots__ = ("moves",)
    MOVES_FIELD_NUMBER: _ClassVar[int]
    moves: _containers.RepeatedCompositeFieldContainer[ReplicaMove]
    def __init__(self, moves: _Optional[_Iterable[_Union[ReplicaMove, _Mapping]]] = ...) -> None: ...

class DescribeWaitingRequest(_message.Message):
    __slots__ = ("domain",)
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    domain: str
    def __init__(self, domain: _Optional[str] = ...) -> None: ...

class NodeWaiting(_message.Message):
    __slots__ = ("node", "error", "suspected", "waiting")
    NODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SUSPECTED_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    node: str
    error: str
    suspected: bool
    waiting: _containers.RepeatedCompositeFieldContainer[_sequencer_pb2.WaitingEnvelope]
    def __init__(self, node: _Optional[str] = ..., error: _Optional[str] = ..., suspected: _Optional[bool] = ..., waiting: _Optional[_Iterable[_Union[_sequencer_pb2.WaitingEnvelope, _Mapping]]] = ...) -> None: ...

class DescribeWaitingResponse(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeWaiting]
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodeWaiting, _Mapping]]] = ...) -> None: ...
