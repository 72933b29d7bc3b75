from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CellBallot(_message.Message):
    __slots__ = ("round", "incarnation")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    round: int
    incarnation: int
    def __init__(self, round: _Optional[int] = ..., incarnation: _Optional[int] = ...) -> None: ...

class CellPrepare(_message.Message):
    __slots__ = ("group", "configuration", "ballot", "first")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    BALLOT_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    ballot: CellBallot
    first: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., ballot: _Optional[_Union[CellBallot, _Mapping]] = ..., first: _Optional[int] = ...) -> None: ...

class CellVoted(_message.Message):
    __slots__ = ("instance", "ballot", "value")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    BALLOT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    instance: int
    ballot: CellBallot
    value: bytes
    def __init__(self, instance: _Optional[int] = ..., ballot: _Optional[_Union[CellBallot, _Mapping]] = ..., value: _Optional[bytes] = ...) -> None: ...

class CellPromise(_message.Message):
    __slots__ = ("group", "configuration", "ballot", "first", "votes")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    BALLOT_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    VOTES_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    ballot: CellBallot
    first: int
    votes: _containers.RepeatedCompositeFieldContainer[CellVoted]
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., ballot: _Optional[_Union[CellBallot, _Mapping]] = ..., first: _Optional[int] = ..., votes: _Optional[_Iterable[_Union[CellVoted, _Mapping]]] = ...) -> None: ...

class CellRejected(_message.Message):
    __slots__ = ("group", "configuration", "promised")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    promised: CellBallot
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., promised: _Optional[_Union[CellBallot, _Mapping]] = ...) -> None: ...

class CellAccept(_message.Message):
    __slots__ = ("group", "configuration", "ballot", "instance", "value")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    BALLOT_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    ballot: CellBallot
    instance: int
    value: bytes
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., ballot: _Optional[_Union[CellBallot, _Mapping]] = ..., instance: _Optional[int] = ..., value: _Optional[bytes] = ...) -> None: ...

class CellVote(_message.Message):
    __slots__ = ("group", "configuration", "ballot", "instance", "value")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    BALLOT_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    ballot: CellBallot
    instance: int
    value: bytes
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., ballot: _Optional[_Union[CellBallot, _Mapping]] = ..., instance: _Optional[int] = ..., value: _Optional[bytes] = ...) -> None: ...

class CellLead(_message.Message):
    __slots__ = ("group", "configuration", "ballot", "next")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    BALLOT_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    ballot: CellBallot
    next: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., ballot: _Optional[_Union[CellBallot, _Mapping]] = ..., next: _Optional[int] = ...) -> None: ...

class CellTell(_message.Message):
    __slots__ = ("group", "first", "values")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    group: str
    first: int
    values: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, group: _Optional[str] = ..., first: _Optional[int] = ..., values: _Optional[_Iterable[bytes]] = ...) -> None: ...

class CellAcceptorRecord(_message.Message):
    __slots__ = ("configuration", "promised", "forgotten")
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    configuration: int
    promised: CellBallot
    forgotten: int
    def __init__(self, configuration: _Optional[int] = ..., promised: _Optional[_Union[CellBallot, _Mapping]] = ..., forgotten: _Optional[int] = ...) -> None: ...
