from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Publication(_message.Message):
    __slots__ = ("producer", "sequence", "groups", "body")
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    producer: bytes
    sequence: int
    groups: _containers.RepeatedScalarFieldContainer[str]
    body: bytes
    def __init__(self, producer: _Optional[bytes] = ..., sequence: _Optional[int] = ..., groups: _Optional[_Iterable[str]] = ..., body: _Optional[bytes] = ...) -> None: ...

class StreamEntry(_message.Message):
    __slots__ = ("timestamp", "cast", "mark")
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CAST_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    timestamp: int
    cast: Publication
    mark: int
    def __init__(self, timestamp: _Optional[int] = ..., cast: _Optional[_Union[Publication, _Mapping]] = ..., mark: _Optional[int] = ...) -> None: ...

class Entries(_message.Message):
    __slots__ = ("stream", "first", "entries", "announced", "fetched")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    ANNOUNCED_FIELD_NUMBER: _ClassVar[int]
    FETCHED_FIELD_NUMBER: _ClassVar[int]
    stream: int
    first: int
    entries: _containers.RepeatedCompositeFieldContainer[StreamEntry]
    announced: int
    fetched: bool
    def __init__(self, stream: _Optional[int] = ..., first: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[StreamEntry, _Mapping]]] = ..., announced: _Optional[int] = ..., fetched: _Optional[bool] = ...) -> None: ...

class Want(_message.Message):
    __slots__ = ("stream", "timestamp")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    stream: int
    timestamp: int
    def __init__(self, stream: _Optional[int] = ..., timestamp: _Optional[int] = ...) -> None: ...

class Held(_message.Message):
    __slots__ = ("stream", "length", "synced", "group", "configuration", "merged", "highest")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    SYNCED_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    MERGED_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_FIELD_NUMBER: _ClassVar[int]
    stream: int
    length: int
    synced: int
    group: str
    configuration: int
    merged: int
    highest: int
    def __init__(self, stream: _Optional[int] = ..., length: _Optional[int] = ..., synced: _Optional[int] = ..., group: _Optional[str] = ..., configuration: _Optional[int] = ..., merged: _Optional[int] = ..., highest: _Optional[int] = ...) -> None: ...

class PlaceInGroup(_message.Message):
    __slots__ = ("group", "offset")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    group: str
    offset: int
    def __init__(self, group: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("stream", "index", "duplicate", "mseq", "places")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    MSEQ_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    stream: int
    index: int
    duplicate: bool
    mseq: int
    places: _containers.RepeatedCompositeFieldContainer[PlaceInGroup]
    def __init__(self, stream: _Optional[int] = ..., index: _Optional[int] = ..., duplicate: _Optional[bool] = ..., mseq: _Optional[int] = ..., places: _Optional[_Iterable[_Union[PlaceInGroup, _Mapping]]] = ...) -> None: ...

class Fetch(_message.Message):
    __slots__ = ("stream", "first")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    stream: int
    first: int
    def __init__(self, stream: _Optional[int] = ..., first: _Optional[int] = ...) -> None: ...

class StreamPosition(_message.Message):
    __slots__ = ("stream", "index", "last", "aside", "bias")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    ASIDE_FIELD_NUMBER: _ClassVar[int]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    stream: int
    index: int
    last: int
    aside: bool
    bias: int
    def __init__(self, stream: _Optional[int] = ..., index: _Optional[int] = ..., last: _Optional[int] = ..., aside: _Optional[bool] = ..., bias: _Optional[int] = ...) -> None: ...

class ProducerState(_message.Message):
    __slots__ = ("producer", "sequence", "heard_at")
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    HEARD_AT_FIELD_NUMBER: _ClassVar[int]
    producer: bytes
    sequence: int
    heard_at: int
    def __init__(self, producer: _Optional[bytes] = ..., sequence: _Optional[int] = ..., heard_at: _Optional[int] = ...) -> None: ...

class MergeState(_message.Message):
    __slots__ = ("view", "positions", "mseq", "offsets", "producers")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    MSEQ_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    view: int
    positions: _containers.RepeatedCompositeFieldContainer[StreamPosition]
    mseq: int
    offsets: _containers.RepeatedCompositeFieldContainer[PlaceInGroup]
    producers: _containers.RepeatedCompositeFieldContainer[ProducerState]
    def __init__(self, view: _Optional[int] = ..., positions: _Optional[_Iterable[_Union[StreamPosition, _Mapping]]] = ..., mseq: _Optional[int] = ..., offsets: _Optional[_Iterable[_Union[PlaceInGroup, _Mapping]]] = ..., producers: _Optional[_Iterable[_Union[ProducerState, _Mapping]]] = ...) -> None: ...

class MergeSnapshot(_message.Message):
    __slots__ = ("state", "begins")
    STATE_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    state: MergeState
    begins: int
    def __init__(self, state: _Optional[_Union[MergeState, _Mapping]] = ..., begins: _Optional[int] = ...) -> None: ...

class AskSnapshot(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CopyLog(_message.Message):
    __slots__ = ("first",)
    FIRST_FIELD_NUMBER: _ClassVar[int]
    first: int
    def __init__(self, first: _Optional[int] = ...) -> None: ...

class Numbered(_message.Message):
    __slots__ = ("mseq", "cast", "places")
    MSEQ_FIELD_NUMBER: _ClassVar[int]
    CAST_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    mseq: int
    cast: Publication
    places: _containers.RepeatedCompositeFieldContainer[PlaceInGroup]
    def __init__(self, mseq: _Optional[int] = ..., cast: _Optional[_Union[Publication, _Mapping]] = ..., places: _Optional[_Iterable[_Union[PlaceInGroup, _Mapping]]] = ...) -> None: ...

class LogPiece(_message.Message):
    __slots__ = ("first", "items", "begins")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    first: int
    items: _containers.RepeatedCompositeFieldContainer[Numbered]
    begins: int
    def __init__(self, first: _Optional[int] = ..., items: _Optional[_Iterable[_Union[Numbered, _Mapping]]] = ..., begins: _Optional[int] = ...) -> None: ...

class RootConfiguration(_message.Message):
    __slots__ = ("number", "members")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    number: int
    members: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., members: _Optional[_Iterable[str]] = ...) -> None: ...

class RootGroup(_message.Message):
    __slots__ = ("group", "defined", "started")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    DEFINED_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    group: str
    defined: RootConfiguration
    started: RootConfiguration
    def __init__(self, group: _Optional[str] = ..., defined: _Optional[_Union[RootConfiguration, _Mapping]] = ..., started: _Optional[_Union[RootConfiguration, _Mapping]] = ...) -> None: ...

class BroadcasterStream(_message.Message):
    __slots__ = ("stream", "process", "incarnation", "attempt", "home", "first", "bias_us", "rate")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    HOME_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    BIAS_US_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    stream: int
    process: str
    incarnation: int
    attempt: int
    home: str
    first: int
    bias_us: int
    rate: int
    def __init__(self, stream: _Optional[int] = ..., process: _Optional[str] = ..., incarnation: _Optional[int] = ..., attempt: _Optional[int] = ..., home: _Optional[str] = ..., first: _Optional[int] = ..., bias_us: _Optional[int] = ..., rate: _Optional[int] = ...) -> None: ...

class StreamEnd(_message.Message):
    __slots__ = ("stream", "length", "keeper")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    KEEPER_FIELD_NUMBER: _ClassVar[int]
    stream: int
    length: int
    keeper: str
    def __init__(self, stream: _Optional[int] = ..., length: _Optional[int] = ..., keeper: _Optional[str] = ...) -> None: ...

class StreamView(_message.Message):
    __slots__ = ("number", "streams", "ends")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    number: int
    streams: _containers.RepeatedCompositeFieldContainer[BroadcasterStream]
    ends: _containers.RepeatedCompositeFieldContainer[StreamEnd]
    def __init__(self, number: _Optional[int] = ..., streams: _Optional[_Iterable[_Union[BroadcasterStream, _Mapping]]] = ..., ends: _Optional[_Iterable[_Union[StreamEnd, _Mapping]]] = ...) -> None: ...

class Removal(_message.Message):
    __slots__ = ("stream", "configuration")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    stream: int
    configuration: int
    def __init__(self, stream: _Optional[int] = ..., configuration: _Optional[int] = ...) -> None: ...

class Streams(_message.Message):
    __slots__ = ("revision", "groups", "views", "removals", "next_stream")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    VIEWS_FIELD_NUMBER: _ClassVar[int]
    REMOVALS_FIELD_NUMBER: _ClassVar[int]
    NEXT_STREAM_FIELD_NUMBER: _ClassVar[int]
    revision: int
    groups: _containers.RepeatedCompositeFieldContainer[RootGroup]
    views: _containers.RepeatedCompositeFieldContainer[StreamView]
    removals: _containers.RepeatedCompositeFieldContainer[Removal]
    next_stream: int
    def __init__(self, revision: _Optional[int] = ..., groups: _Optional[_Iterable[_Union[RootGroup, _Mapping]]] = ..., views: _Optional[_Iterable[_Union[StreamView, _Mapping]]] = ..., removals: _Optional[_Iterable[_Union[Removal, _Mapping]]] = ..., next_stream: _Optional[int] = ...) -> None: ...

class JoinStreams(_message.Message):
    __slots__ = ("incarnation", "attempt", "rate", "home", "first")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    HOME_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    attempt: int
    rate: int
    home: str
    first: int
    def __init__(self, incarnation: _Optional[int] = ..., attempt: _Optional[int] = ..., rate: _Optional[int] = ..., home: _Optional[str] = ..., first: _Optional[int] = ...) -> None: ...

class LeaveStreams(_message.Message):
    __slots__ = ("stream", "length", "keeper", "configuration")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    KEEPER_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    stream: int
    length: int
    keeper: str
    configuration: int
    def __init__(self, stream: _Optional[int] = ..., length: _Optional[int] = ..., keeper: _Optional[str] = ..., configuration: _Optional[int] = ...) -> None: ...

class Silent(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: int
    def __init__(self, stream: _Optional[int] = ...) -> None: ...

class StreamSealed(_message.Message):
    __slots__ = ("stream", "group", "configuration", "length")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    stream: int
    group: str
    configuration: int
    length: int
    def __init__(self, stream: _Optional[int] = ..., group: _Optional[str] = ..., configuration: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class Fill(_message.Message):
    __slots__ = ("stream", "configuration", "length", "holder")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    stream: int
    configuration: int
    length: int
    holder: str
    def __init__(self, stream: _Optional[int] = ..., configuration: _Optional[int] = ..., length: _Optional[int] = ..., holder: _Optional[str] = ...) -> None: ...

class Begun(_message.Message):
    __slots__ = ("group", "configuration", "view")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    view: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., view: _Optional[int] = ...) -> None: ...

class SealConfiguration(_message.Message):
    __slots__ = ("group", "configuration")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ...) -> None: ...

class RootHandOver(_message.Message):
    __slots__ = ("group", "configuration", "next", "lengths", "state")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    next: int
    lengths: _containers.RepeatedCompositeFieldContainer[StreamPosition]
    state: MergeState
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., next: _Optional[int] = ..., lengths: _Optional[_Iterable[_Union[StreamPosition, _Mapping]]] = ..., state: _Optional[_Union[MergeState, _Mapping]] = ...) -> None: ...

class Ready(_message.Message):
    __slots__ = ("group", "configuration")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ...) -> None: ...

class Neighbour(_message.Message):
    __slots__ = ("process", "address", "incarnation", "counter", "gone", "interest")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    INTEREST_FIELD_NUMBER: _ClassVar[int]
    process: str
    address: _containers.RepeatedScalarFieldContainer[int]
    incarnation: int
    counter: int
    gone: bool
    interest: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, process: _Optional[str] = ..., address: _Optional[_Iterable[int]] = ..., incarnation: _Optional[int] = ..., counter: _Optional[int] = ..., gone: _Optional[bool] = ..., interest: _Optional[_Iterable[str]] = ...) -> None: ...

class ViewUpdate(_message.Message):
    __slots__ = ("neighbours", "head")
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    neighbours: _containers.RepeatedCompositeFieldContainer[Neighbour]
    head: int
    def __init__(self, neighbours: _Optional[_Iterable[_Union[Neighbour, _Mapping]]] = ..., head: _Optional[int] = ...) -> None: ...

class JoinGossip(_message.Message):
    __slots__ = ("joining",)
    JOINING_FIELD_NUMBER: _ClassVar[int]
    joining: Neighbour
    def __init__(self, joining: _Optional[_Union[Neighbour, _Mapping]] = ...) -> None: ...

class JoinReply(_message.Message):
    __slots__ = ("neighbours", "head")
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    neighbours: _containers.RepeatedCompositeFieldContainer[Neighbour]
    head: int
    def __init__(self, neighbours: _Optional[_Iterable[_Union[Neighbour, _Mapping]]] = ..., head: _Optional[int] = ...) -> None: ...

class Rumour(_message.Message):
    __slots__ = ("item", "round")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    item: Numbered
    round: int
    def __init__(self, item: _Optional[_Union[Numbered, _Mapping]] = ..., round: _Optional[int] = ...) -> None: ...

class RumourGossip(_message.Message):
    __slots__ = ("level", "rumours", "head", "low", "next")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    RUMOURS_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    level: int
    rumours: _containers.RepeatedCompositeFieldContainer[Rumour]
    head: int
    low: int
    next: int
    def __init__(self, level: _Optional[int] = ..., rumours: _Optional[_Iterable[_Union[Rumour, _Mapping]]] = ..., head: _Optional[int] = ..., low: _Optional[int] = ..., next: _Optional[int] = ...) -> None: ...

class AskMissed(_message.Message):
    __slots__ = ("first", "count", "groups")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    first: int
    count: int
    groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, first: _Optional[int] = ..., count: _Optional[int] = ..., groups: _Optional[_Iterable[str]] = ...) -> None: ...

class Missed(_message.Message):
    __slots__ = ("items", "begins", "first", "through")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    THROUGH_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Numbered]
    begins: int
    first: int
    through: int
    def __init__(self, items: _Optional[_Iterable[_Union[Numbered, _Mapping]]] = ..., begins: _Optional[int] = ..., first: _Optional[int] = ..., through: _Optional[int] = ...) -> None: ...

class AskHead(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, groups: _Optional[_Iterable[str]] = ...) -> None: ...

class Head(_message.Message):
    __slots__ = ("mseq", "offsets")
    MSEQ_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    mseq: int
    offsets: _containers.RepeatedCompositeFieldContainer[PlaceInGroup]
    def __init__(self, mseq: _Optional[int] = ..., offsets: _Optional[_Iterable[_Union[PlaceInGroup, _Mapping]]] = ...) -> None: ...
