from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GroupView(_message.Message):
    __slots__ = ("group", "configuration", "replicas", "acceptors")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTORS_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    replicas: _containers.RepeatedScalarFieldContainer[str]
    acceptors: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., replicas: _Optional[_Iterable[str]] = ..., acceptors: _Optional[_Iterable[str]] = ...) -> None: ...

class DomainView(_message.Message):
    __slots__ = ("domain", "number", "groups")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    domain: str
    number: int
    groups: _containers.RepeatedCompositeFieldContainer[GroupView]
    def __init__(self, domain: _Optional[str] = ..., number: _Optional[int] = ..., groups: _Optional[_Iterable[_Union[GroupView, _Mapping]]] = ...) -> None: ...
