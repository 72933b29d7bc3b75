from ordercast.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LogStanding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOG_STANDING_UNSPECIFIED: _ClassVar[LogStanding]
    LOG_STANDING_EMPTY: _ClassVar[LogStanding]
    LOG_STANDING_MUTE: _ClassVar[LogStanding]
    LOG_STANDING_FOUNDER: _ClassVar[LogStanding]
    LOG_STANDING_READMITTED: _ClassVar[LogStanding]
LOG_STANDING_UNSPECIFIED: LogStanding
LOG_STANDING_EMPTY: LogStanding
LOG_STANDING_MUTE: LogStanding
LOG_STANDING_FOUNDER: LogStanding
LOG_STANDING_READMITTED: LogStanding

class Round(_message.Message):
    __slots__ = ("number", "owner")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    number: int
    owner: int
    def __init__(self, number: _Optional[int] = ..., owner: _Optional[int] = ...) -> None: ...

class Prepare(_message.Message):
    __slots__ = ("instance", "round", "groups", "done", "open")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    instance: bytes
    round: Round
    groups: _containers.RepeatedCompositeFieldContainer[_common_pb2.Destination]
    done: int
    open: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, instance: _Optional[bytes] = ..., round: _Optional[_Union[Round, _Mapping]] = ..., groups: _Optional[_Iterable[_Union[_common_pb2.Destination, _Mapping]]] = ..., done: _Optional[int] = ..., open: _Optional[_Iterable[int]] = ...) -> None: ...

class Promise(_message.Message):
    __slots__ = ("instance", "round", "voted_round", "voted_value")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    VOTED_ROUND_FIELD_NUMBER: _ClassVar[int]
    VOTED_VALUE_FIELD_NUMBER: _ClassVar[int]
    instance: bytes
    round: Round
    voted_round: Round
    voted_value: bytes
    def __init__(self, instance: _Optional[bytes] = ..., round: _Optional[_Union[Round, _Mapping]] = ..., voted_round: _Optional[_Union[Round, _Mapping]] = ..., voted_value: _Optional[bytes] = ...) -> None: ...

class Accept(_message.Message):
    __slots__ = ("instance", "round", "value", "groups", "done", "open")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    instance: bytes
    round: Round
    value: bytes
    groups: _containers.RepeatedCompositeFieldContainer[_common_pb2.Destination]
    done: int
    open: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, instance: _Optional[bytes] = ..., round: _Optional[_Union[Round, _Mapping]] = ..., value: _Optional[bytes] = ..., groups: _Optional[_Iterable[_Union[_common_pb2.Destination, _Mapping]]] = ..., done: _Optional[int] = ..., open: _Optional[_Iterable[int]] = ...) -> None: ...

class Accepted(_message.Message):
    __slots__ = ("instance", "round")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    instance: bytes
    round: Round
    def __init__(self, instance: _Optional[bytes] = ..., round: _Optional[_Union[Round, _Mapping]] = ...) -> None: ...

class Rejected(_message.Message):
    __slots__ = ("instance", "promised")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    instance: bytes
    promised: Round
    def __init__(self, instance: _Optional[bytes] = ..., promised: _Optional[_Union[Round, _Mapping]] = ...) -> None: ...

class Closed(_message.Message):
    __slots__ = ("instance",)
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    instance: bytes
    def __init__(self, instance: _Optional[bytes] = ...) -> None: ...

class Close(_message.Message):
    __slots__ = ("instances", "finished")
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    instances: _containers.RepeatedScalarFieldContainer[bytes]
    finished: _containers.RepeatedCompositeFieldContainer[ClosedRecord]
    def __init__(self, instances: _Optional[_Iterable[bytes]] = ..., finished: _Optional[_Iterable[_Union[ClosedRecord, _Mapping]]] = ...) -> None: ...

class ClosedRecord(_message.Message):
    __slots__ = ("done", "open", "incarnation")
    DONE_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    done: int
    open: _containers.RepeatedScalarFieldContainer[int]
    incarnation: int
    def __init__(self, done: _Optional[int] = ..., open: _Optional[_Iterable[int]] = ..., incarnation: _Optional[int] = ...) -> None: ...

class Decide(_message.Message):
    __slots__ = ("instance", "value")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    instance: bytes
    value: bytes
    def __init__(self, instance: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class AcceptorRecord(_message.Message):
    __slots__ = ("promised", "voted_round", "voted_value", "groups")
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    VOTED_ROUND_FIELD_NUMBER: _ClassVar[int]
    VOTED_VALUE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    promised: Round
    voted_round: Round
    voted_value: bytes
    groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, promised: _Optional[_Union[Round, _Mapping]] = ..., voted_round: _Optional[_Union[Round, _Mapping]] = ..., voted_value: _Optional[bytes] = ..., groups: _Optional[_Iterable[str]] = ...) -> None: ...

class VotesAsk(_message.Message):
    __slots__ = ("group", "configuration", "after")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    after: bytes
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., after: _Optional[bytes] = ...) -> None: ...

class InstanceVote(_message.Message):
    __slots__ = ("instance", "vote")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    VOTE_FIELD_NUMBER: _ClassVar[int]
    instance: bytes
    vote: AcceptorRecord
    def __init__(self, instance: _Optional[bytes] = ..., vote: _Optional[_Union[AcceptorRecord, _Mapping]] = ...) -> None: ...

class Votes(_message.Message):
    __slots__ = ("group", "configuration", "whole", "votes", "closed", "buried", "retired", "after", "more", "idle")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    VOTES_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    BURIED_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    whole: bool
    votes: _containers.RepeatedCompositeFieldContainer[InstanceVote]
    closed: _containers.RepeatedCompositeFieldContainer[ClosedRecord]
    buried: _containers.RepeatedScalarFieldContainer[bytes]
    retired: int
    after: bytes
    more: bool
    idle: bool
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., whole: _Optional[bool] = ..., votes: _Optional[_Iterable[_Union[InstanceVote, _Mapping]]] = ..., closed: _Optional[_Iterable[_Union[ClosedRecord, _Mapping]]] = ..., buried: _Optional[_Iterable[bytes]] = ..., retired: _Optional[int] = ..., after: _Optional[bytes] = ..., more: _Optional[bool] = ..., idle: _Optional[bool] = ...) -> None: ...

class LogItem(_message.Message):
    __slots__ = ("origin", "value")
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    origin: Round
    value: bytes
    def __init__(self, origin: _Optional[_Union[Round, _Mapping]] = ..., value: _Optional[bytes] = ...) -> None: ...

class LogVote(_message.Message):
    __slots__ = ("slot", "round", "item")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    slot: int
    round: Round
    item: LogItem
    def __init__(self, slot: _Optional[int] = ..., round: _Optional[_Union[Round, _Mapping]] = ..., item: _Optional[_Union[LogItem, _Mapping]] = ...) -> None: ...

class LogPrepare(_message.Message):
    __slots__ = ("round", "decided")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    round: Round
    decided: int
    def __init__(self, round: _Optional[_Union[Round, _Mapping]] = ..., decided: _Optional[int] = ...) -> None: ...

class LogPromise(_message.Message):
    __slots__ = ("round", "decided", "votes", "lives")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    VOTES_FIELD_NUMBER: _ClassVar[int]
    LIVES_FIELD_NUMBER: _ClassVar[int]
    round: Round
    decided: int
    votes: _containers.RepeatedCompositeFieldContainer[LogVote]
    lives: _containers.RepeatedCompositeFieldContainer[LogLife]
    def __init__(self, round: _Optional[_Union[Round, _Mapping]] = ..., decided: _Optional[int] = ..., votes: _Optional[_Iterable[_Union[LogVote, _Mapping]]] = ..., lives: _Optional[_Iterable[_Union[LogLife, _Mapping]]] = ...) -> None: ...

class LogAccept(_message.Message):
    __slots__ = ("round", "decided", "first", "items")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    round: Round
    decided: int
    first: int
    items: _containers.RepeatedCompositeFieldContainer[LogItem]
    def __init__(self, round: _Optional[_Union[Round, _Mapping]] = ..., decided: _Optional[int] = ..., first: _Optional[int] = ..., items: _Optional[_Iterable[_Union[LogItem, _Mapping]]] = ...) -> None: ...

class LogAccepted(_message.Message):
    __slots__ = ("round", "decided", "first", "count", "lives")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LIVES_FIELD_NUMBER: _ClassVar[int]
    round: Round
    decided: int
    first: int
    count: int
    lives: _containers.RepeatedCompositeFieldContainer[LogLife]
    def __init__(self, round: _Optional[_Union[Round, _Mapping]] = ..., decided: _Optional[int] = ..., first: _Optional[int] = ..., count: _Optional[int] = ..., lives: _Optional[_Iterable[_Union[LogLife, _Mapping]]] = ...) -> None: ...

class LogRejected(_message.Message):
    __slots__ = ("promised", "decided")
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    promised: Round
    decided: int
    def __init__(self, promised: _Optional[_Union[Round, _Mapping]] = ..., decided: _Optional[int] = ...) -> None: ...

class LogDecided(_message.Message):
    __slots__ = ("round", "decided")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    round: Round
    decided: int
    def __init__(self, round: _Optional[_Union[Round, _Mapping]] = ..., decided: _Optional[int] = ...) -> None: ...

class LogHeartbeat(_message.Message):
    __slots__ = ("round", "decided")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    round: Round
    decided: int
    def __init__(self, round: _Optional[_Union[Round, _Mapping]] = ..., decided: _Optional[int] = ...) -> None: ...

class LogEcho(_message.Message):
    __slots__ = ("round", "decided")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    round: Round
    decided: int
    def __init__(self, round: _Optional[_Union[Round, _Mapping]] = ..., decided: _Optional[int] = ...) -> None: ...

class LogFetch(_message.Message):
    __slots__ = ("decided",)
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    decided: int
    def __init__(self, decided: _Optional[int] = ...) -> None: ...

class LogTail(_message.Message):
    __slots__ = ("first", "decided", "items")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    first: int
    decided: int
    items: _containers.RepeatedCompositeFieldContainer[LogItem]
    def __init__(self, first: _Optional[int] = ..., decided: _Optional[int] = ..., items: _Optional[_Iterable[_Union[LogItem, _Mapping]]] = ...) -> None: ...

class LogInstall(_message.Message):
    __slots__ = ("slot", "decided", "snapshot")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    slot: int
    decided: int
    snapshot: bytes
    def __init__(self, slot: _Optional[int] = ..., decided: _Optional[int] = ..., snapshot: _Optional[bytes] = ...) -> None: ...

class LogLife(_message.Message):
    __slots__ = ("member", "life")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    member: str
    life: int
    def __init__(self, member: _Optional[str] = ..., life: _Optional[int] = ...) -> None: ...

class LogFoundAsk(_message.Message):
    __slots__ = ("decided", "disk")
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    DISK_FIELD_NUMBER: _ClassVar[int]
    decided: int
    disk: bytes
    def __init__(self, decided: _Optional[int] = ..., disk: _Optional[bytes] = ...) -> None: ...

class LogFoundGrant(_message.Message):
    __slots__ = ("decided", "asked", "disk")
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    DISK_FIELD_NUMBER: _ClassVar[int]
    decided: int
    asked: bytes
    disk: bytes
    def __init__(self, decided: _Optional[int] = ..., asked: _Optional[bytes] = ..., disk: _Optional[bytes] = ...) -> None: ...

class LogRejoin(_message.Message):
    __slots__ = ("decided", "life", "until")
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    decided: int
    life: int
    until: int
    def __init__(self, decided: _Optional[int] = ..., life: _Optional[int] = ..., until: _Optional[int] = ...) -> None: ...

class LogRejoined(_message.Message):
    __slots__ = ("decided", "life", "promised", "unvoted", "lives")
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    UNVOTED_FIELD_NUMBER: _ClassVar[int]
    LIVES_FIELD_NUMBER: _ClassVar[int]
    decided: int
    life: int
    promised: Round
    unvoted: int
    lives: _containers.RepeatedCompositeFieldContainer[LogLife]
    def __init__(self, decided: _Optional[int] = ..., life: _Optional[int] = ..., promised: _Optional[_Union[Round, _Mapping]] = ..., unvoted: _Optional[int] = ..., lives: _Optional[_Iterable[_Union[LogLife, _Mapping]]] = ...) -> None: ...

class LogStandingRecord(_message.Message):
    __slots__ = ("standing", "life", "disk")
    STANDING_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    DISK_FIELD_NUMBER: _ClassVar[int]
    standing: LogStanding
    life: int
    disk: bytes
    def __init__(self, standing: _Optional[_Union[LogStanding, str]] = ..., life: _Optional[int] = ..., disk: _Optional[bytes] = ...) -> None: ...

class LogEntryRecord(_message.Message):
    __slots__ = ("voted", "item")
    VOTED_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    voted: Round
    item: LogItem
    def __init__(self, voted: _Optional[_Union[Round, _Mapping]] = ..., item: _Optional[_Union[LogItem, _Mapping]] = ...) -> None: ...

class LogSnapshotRecord(_message.Message):
    __slots__ = ("slot", "snapshot")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    slot: int
    snapshot: bytes
    def __init__(self, slot: _Optional[int] = ..., snapshot: _Optional[bytes] = ...) -> None: ...
