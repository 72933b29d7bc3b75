from ordercast.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GroupState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GROUP_STATE_UNSPECIFIED: _ClassVar[GroupState]
    GROUP_STATE_ACTIVE: _ClassVar[GroupState]
    GROUP_STATE_DELETING: _ClassVar[GroupState]
    GROUP_STATE_DELETED: _ClassVar[GroupState]

class ReplicaChange(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REPLICA_CHANGE_UNSPECIFIED: _ClassVar[ReplicaChange]
    REPLICA_CHANGE_ADD: _ClassVar[ReplicaChange]
    REPLICA_CHANGE_REMOVE: _ClassVar[ReplicaChange]
    REPLICA_CHANGE_REPLACE: _ClassVar[ReplicaChange]
GROUP_STATE_UNSPECIFIED: GroupState
GROUP_STATE_ACTIVE: GroupState
GROUP_STATE_DELETING: GroupState
GROUP_STATE_DELETED: GroupState
REPLICA_CHANGE_UNSPECIFIED: ReplicaChange
REPLICA_CHANGE_ADD: ReplicaChange
REPLICA_CHANGE_REMOVE: ReplicaChange
REPLICA_CHANGE_REPLACE: ReplicaChange

class Configuration(_message.Message):
    __slots__ = ("number", "replicas", "acceptors", "lost")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTORS_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    number: int
    replicas: _containers.RepeatedScalarFieldContainer[str]
    acceptors: _containers.RepeatedScalarFieldContainer[str]
    lost: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., replicas: _Optional[_Iterable[str]] = ..., acceptors: _Optional[_Iterable[str]] = ..., lost: _Optional[_Iterable[str]] = ...) -> None: ...

class GroupView(_message.Message):
    __slots__ = ("group", "configuration", "replicas", "acceptors", "previous", "starting", "learners", "lost", "incarnations", "leaving", "epoch", "settings")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTORS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    STARTING_FIELD_NUMBER: _ClassVar[int]
    LEARNERS_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    INCARNATIONS_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    replicas: _containers.RepeatedScalarFieldContainer[str]
    acceptors: _containers.RepeatedScalarFieldContainer[str]
    previous: Configuration
    starting: _containers.RepeatedScalarFieldContainer[str]
    learners: _containers.RepeatedScalarFieldContainer[str]
    lost: _containers.RepeatedScalarFieldContainer[str]
    incarnations: _containers.RepeatedScalarFieldContainer[int]
    leaving: _containers.RepeatedScalarFieldContainer[str]
    epoch: int
    settings: _containers.ScalarMap[str, str]
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., replicas: _Optional[_Iterable[str]] = ..., acceptors: _Optional[_Iterable[str]] = ..., previous: _Optional[_Union[Configuration, _Mapping]] = ..., starting: _Optional[_Iterable[str]] = ..., learners: _Optional[_Iterable[str]] = ..., lost: _Optional[_Iterable[str]] = ..., incarnations: _Optional[_Iterable[int]] = ..., leaving: _Optional[_Iterable[str]] = ..., epoch: _Optional[int] = ..., settings: _Optional[_Mapping[str, str]] = ...) -> None: ...

class DomainView(_message.Message):
    __slots__ = ("domain", "number", "groups", "changed", "level", "processes")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    domain: str
    number: int
    groups: _containers.RepeatedCompositeFieldContainer[GroupView]
    changed: int
    level: int
    processes: ProcessView
    def __init__(self, domain: _Optional[str] = ..., number: _Optional[int] = ..., groups: _Optional[_Iterable[_Union[GroupView, _Mapping]]] = ..., changed: _Optional[int] = ..., level: _Optional[int] = ..., processes: _Optional[_Union[ProcessView, _Mapping]] = ...) -> None: ...

class ProcessView(_message.Message):
    __slots__ = ("number", "names", "previous", "previous_names")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_NAMES_FIELD_NUMBER: _ClassVar[int]
    number: int
    names: _containers.RepeatedScalarFieldContainer[str]
    previous: int
    previous_names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ..., previous: _Optional[int] = ..., previous_names: _Optional[_Iterable[str]] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("name", "node_id", "services", "peer_address", "client_address", "zone", "incarnation", "suspected", "read_only", "revision", "ended", "draining", "level", "removed", "disk_lost", "protocols")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SUSPECTED_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    DISK_LOST_FIELD_NUMBER: _ClassVar[int]
    PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    name: str
    node_id: bytes
    services: _containers.RepeatedScalarFieldContainer[str]
    peer_address: str
    client_address: str
    zone: str
    incarnation: int
    suspected: bool
    read_only: bool
    revision: int
    ended: bool
    draining: bool
    level: int
    removed: bool
    disk_lost: bool
    protocols: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., node_id: _Optional[bytes] = ..., services: _Optional[_Iterable[str]] = ..., peer_address: _Optional[str] = ..., client_address: _Optional[str] = ..., zone: _Optional[str] = ..., incarnation: _Optional[int] = ..., suspected: _Optional[bool] = ..., read_only: _Optional[bool] = ..., revision: _Optional[int] = ..., ended: _Optional[bool] = ..., draining: _Optional[bool] = ..., level: _Optional[int] = ..., removed: _Optional[bool] = ..., disk_lost: _Optional[bool] = ..., protocols: _Optional[_Iterable[str]] = ...) -> None: ...

class Domain(_message.Message):
    __slots__ = ("name", "protocol", "settings", "revision")
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
    REVISION_FIELD_NUMBER: _ClassVar[int]
    name: str
    protocol: str
    settings: _containers.ScalarMap[str, str]
    revision: int
    def __init__(self, name: _Optional[str] = ..., protocol: _Optional[str] = ..., settings: _Optional[_Mapping[str, str]] = ..., revision: _Optional[int] = ...) -> None: ...

class Retention(_message.Message):
    __slots__ = ("bytes", "age_s")
    BYTES_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    age_s: int
    def __init__(self, bytes: _Optional[int] = ..., age_s: _Optional[int] = ...) -> None: ...

class Group(_message.Message):
    __slots__ = ("name", "id", "domain", "configuration", "replicas", "acceptors", "state", "retention", "revision", "previous", "starting", "lost", "next", "incarnation_before", "placement", "incarnations", "leaving", "epoch", "settings", "cell", "is_cell")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTORS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    STARTING_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_BEFORE_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    INCARNATIONS_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    CELL_FIELD_NUMBER: _ClassVar[int]
    IS_CELL_FIELD_NUMBER: _ClassVar[int]
    name: str
    id: str
    domain: str
    configuration: int
    replicas: _containers.RepeatedScalarFieldContainer[str]
    acceptors: _containers.RepeatedScalarFieldContainer[str]
    state: GroupState
    retention: Retention
    revision: int
    previous: Configuration
    starting: _containers.RepeatedScalarFieldContainer[str]
    lost: _containers.RepeatedScalarFieldContainer[str]
    next: Configuration
    incarnation_before: int
    placement: _containers.RepeatedScalarFieldContainer[str]
    incarnations: _containers.RepeatedScalarFieldContainer[int]
    leaving: _containers.RepeatedScalarFieldContainer[str]
    epoch: int
    settings: _containers.ScalarMap[str, str]
    cell: str
    is_cell: bool
    def __init__(self, name: _Optional[str] = ..., id: _Optional[str] = ..., domain: _Optional[str] = ..., configuration: _Optional[int] = ..., replicas: _Optional[_Iterable[str]] = ..., acceptors: _Optional[_Iterable[str]] = ..., state: _Optional[_Union[GroupState, str]] = ..., retention: _Optional[_Union[Retention, _Mapping]] = ..., revision: _Optional[int] = ..., previous: _Optional[_Union[Configuration, _Mapping]] = ..., starting: _Optional[_Iterable[str]] = ..., lost: _Optional[_Iterable[str]] = ..., next: _Optional[_Union[Configuration, _Mapping]] = ..., incarnation_before: _Optional[int] = ..., placement: _Optional[_Iterable[str]] = ..., incarnations: _Optional[_Iterable[int]] = ..., leaving: _Optional[_Iterable[str]] = ..., epoch: _Optional[int] = ..., settings: _Optional[_Mapping[str, str]] = ..., cell: _Optional[str] = ..., is_cell: _Optional[bool] = ...) -> None: ...

class Cursor(_message.Message):
    __slots__ = ("group", "name", "offset", "domain", "place")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    group: str
    name: str
    offset: int
    domain: str
    place: _common_pb2.Place
    def __init__(self, group: _Optional[str] = ..., name: _Optional[str] = ..., offset: _Optional[int] = ..., domain: _Optional[str] = ..., place: _Optional[_Union[_common_pb2.Place, _Mapping]] = ...) -> None: ...

class ExecutedCommand(_message.Message):
    __slots__ = ("request_id", "result")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    result: CommandResult
    def __init__(self, request_id: _Optional[bytes] = ..., result: _Optional[_Union[CommandResult, _Mapping]] = ...) -> None: ...

class ClusterState(_message.Message):
    __slots__ = ("cluster_id", "key", "revision", "incarnation_last", "group_last", "retired", "nodes", "domains", "groups", "cursors", "executed", "deleted", "changes_since", "level", "removed", "cells")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_LAST_FIELD_NUMBER: _ClassVar[int]
    GROUP_LAST_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    CURSORS_FIELD_NUMBER: _ClassVar[int]
    EXECUTED_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    CHANGES_SINCE_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    key: bytes
    revision: int
    incarnation_last: int
    group_last: int
    retired: int
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    domains: _containers.RepeatedCompositeFieldContainer[Domain]
    groups: _containers.RepeatedCompositeFieldContainer[Group]
    cursors: _containers.RepeatedCompositeFieldContainer[Cursor]
    executed: _containers.RepeatedCompositeFieldContainer[ExecutedCommand]
    deleted: _containers.RepeatedCompositeFieldContainer[Group]
    changes_since: int
    level: int
    removed: _containers.RepeatedCompositeFieldContainer[Node]
    cells: _containers.RepeatedCompositeFieldContainer[Group]
    def __init__(self, cluster_id: _Optional[bytes] = ..., key: _Optional[bytes] = ..., revision: _Optional[int] = ..., incarnation_last: _Optional[int] = ..., group_last: _Optional[int] = ..., retired: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., domains: _Optional[_Iterable[_Union[Domain, _Mapping]]] = ..., groups: _Optional[_Iterable[_Union[Group, _Mapping]]] = ..., cursors: _Optional[_Iterable[_Union[Cursor, _Mapping]]] = ..., executed: _Optional[_Iterable[_Union[ExecutedCommand, _Mapping]]] = ..., deleted: _Optional[_Iterable[_Union[Group, _Mapping]]] = ..., changes_since: _Optional[int] = ..., level: _Optional[int] = ..., removed: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., cells: _Optional[_Iterable[_Union[Group, _Mapping]]] = ...) -> None: ...

class FoundCluster(_message.Message):
    __slots__ = ("cluster_id", "key")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    key: bytes
    def __init__(self, cluster_id: _Optional[bytes] = ..., key: _Optional[bytes] = ...) -> None: ...

class RegisterNode(_message.Message):
    __slots__ = ("name", "node_id", "services", "peer_address", "client_address", "zone", "cluster_id", "level", "protocols")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    name: str
    node_id: bytes
    services: _containers.RepeatedScalarFieldContainer[str]
    peer_address: str
    client_address: str
    zone: str
    cluster_id: bytes
    level: int
    protocols: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., node_id: _Optional[bytes] = ..., services: _Optional[_Iterable[str]] = ..., peer_address: _Optional[str] = ..., client_address: _Optional[str] = ..., zone: _Optional[str] = ..., cluster_id: _Optional[bytes] = ..., level: _Optional[int] = ..., protocols: _Optional[_Iterable[str]] = ...) -> None: ...

class CreateDomain(_message.Message):
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

class CreateGroup(_message.Message):
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
    retention: Retention
    settings: _containers.ScalarMap[str, str]
    own_cell: bool
    beside: str
    shared: bool
    new_cell: bool
    def __init__(self, name: _Optional[str] = ..., domain: _Optional[str] = ..., replicas: _Optional[int] = ..., retention: _Optional[_Union[Retention, _Mapping]] = ..., settings: _Optional[_Mapping[str, str]] = ..., own_cell: _Optional[bool] = ..., beside: _Optional[str] = ..., shared: _Optional[bool] = ..., new_cell: _Optional[bool] = ...) -> None: ...

class CreateGroups(_message.Message):
    __slots__ = ("like", "names", "exist_ok")
    LIKE_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    EXIST_OK_FIELD_NUMBER: _ClassVar[int]
    like: CreateGroup
    names: _containers.RepeatedScalarFieldContainer[str]
    exist_ok: bool
    def __init__(self, like: _Optional[_Union[CreateGroup, _Mapping]] = ..., names: _Optional[_Iterable[str]] = ..., exist_ok: _Optional[bool] = ...) -> None: ...

class DeleteGroup(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class UpdateGroup(_message.Message):
    __slots__ = ("name", "retention")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    retention: Retention
    def __init__(self, name: _Optional[str] = ..., retention: _Optional[_Union[Retention, _Mapping]] = ...) -> None: ...

class RemoveGroup(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ChangeReplicas(_message.Message):
    __slots__ = ("group", "change", "node", "to")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    group: str
    change: ReplicaChange
    node: str
    to: str
    def __init__(self, group: _Optional[str] = ..., change: _Optional[_Union[ReplicaChange, str]] = ..., node: _Optional[str] = ..., to: _Optional[str] = ...) -> None: ...

class CancelChange(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: str
    def __init__(self, group: _Optional[str] = ...) -> None: ...

class BeginConfiguration(_message.Message):
    __slots__ = ("group", "configuration")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ...) -> None: ...

class DefineView(_message.Message):
    __slots__ = ("group", "number", "members", "incarnations", "leaving")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    INCARNATIONS_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    group: str
    number: int
    members: _containers.RepeatedScalarFieldContainer[str]
    incarnations: _containers.RepeatedScalarFieldContainer[int]
    leaving: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, group: _Optional[str] = ..., number: _Optional[int] = ..., members: _Optional[_Iterable[str]] = ..., incarnations: _Optional[_Iterable[int]] = ..., leaving: _Optional[_Iterable[str]] = ...) -> None: ...

class CompleteView(_message.Message):
    __slots__ = ("group", "number", "epoch")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    group: str
    number: int
    epoch: int
    def __init__(self, group: _Optional[str] = ..., number: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class RecordStarted(_message.Message):
    __slots__ = ("group", "configuration", "members")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    members: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., members: _Optional[_Iterable[str]] = ...) -> None: ...

class RecordLost(_message.Message):
    __slots__ = ("node", "incarnation", "groups")
    NODE_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    node: str
    incarnation: int
    groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, node: _Optional[str] = ..., incarnation: _Optional[int] = ..., groups: _Optional[_Iterable[str]] = ...) -> None: ...

class GiveUpDisk(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: str
    def __init__(self, node: _Optional[str] = ...) -> None: ...

class DrainNode(_message.Message):
    __slots__ = ("node", "draining")
    NODE_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    node: str
    draining: bool
    def __init__(self, node: _Optional[str] = ..., draining: _Optional[bool] = ...) -> None: ...

class RemoveNode(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: str
    def __init__(self, node: _Optional[str] = ...) -> None: ...

class RaiseLevel(_message.Message):
    __slots__ = ("level", "incarnations")
    class IncarnationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    INCARNATIONS_FIELD_NUMBER: _ClassVar[int]
    level: int
    incarnations: _containers.ScalarMap[str, int]
    def __init__(self, level: _Optional[int] = ..., incarnations: _Optional[_Mapping[str, int]] = ...) -> None: ...

class NoteProtocols(_message.Message):
    __slots__ = ("node", "incarnation", "protocols")
    NODE_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    node: str
    incarnation: int
    protocols: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, node: _Optional[str] = ..., incarnation: _Optional[int] = ..., protocols: _Optional[_Iterable[str]] = ...) -> None: ...

class MarkNode(_message.Message):
    __slots__ = ("name", "incarnation", "suspected", "read_only")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SUSPECTED_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    name: str
    incarnation: int
    suspected: bool
    read_only: bool
    def __init__(self, name: _Optional[str] = ..., incarnation: _Optional[int] = ..., suspected: _Optional[bool] = ..., read_only: _Optional[bool] = ...) -> None: ...

class EndIncarnation(_message.Message):
    __slots__ = ("name", "incarnation")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    incarnation: int
    def __init__(self, name: _Optional[str] = ..., incarnation: _Optional[int] = ...) -> None: ...

class RetireIncarnations(_message.Message):
    __slots__ = ("below",)
    BELOW_FIELD_NUMBER: _ClassVar[int]
    below: int
    def __init__(self, below: _Optional[int] = ...) -> None: ...

class MoveCursors(_message.Message):
    __slots__ = ("cursors",)
    CURSORS_FIELD_NUMBER: _ClassVar[int]
    cursors: _containers.RepeatedCompositeFieldContainer[Cursor]
    def __init__(self, cursors: _Optional[_Iterable[_Union[Cursor, _Mapping]]] = ...) -> None: ...

class DeleteCursor(_message.Message):
    __slots__ = ("group", "name", "domain")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    group: str
    name: str
    domain: str
    def __init__(self, group: _Optional[str] = ..., name: _Optional[str] = ..., domain: _Optional[str] = ...) -> None: ...

class ReadCursors(_message.Message):
    __slots__ = ("group", "name", "domain")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    group: str
    name: str
    domain: str
    def __init__(self, group: _Optional[str] = ..., name: _Optional[str] = ..., domain: _Optional[str] = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("request_id", "found", "register", "create_domain", "create_group", "delete_group", "remove_group", "mark_node", "end_incarnation", "retire", "move_cursors", "delete_cursor", "read_cursors", "change_replicas", "cancel_change", "begin_configuration", "record_started", "record_lost", "give_up_disk", "drain_node", "remove_node", "raise_level", "define_view", "complete_view", "note_protocols", "update_group", "create_groups")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    CREATE_DOMAIN_FIELD_NUMBER: _ClassVar[int]
    CREATE_GROUP_FIELD_NUMBER: _ClassVar[int]
    DELETE_GROUP_FIELD_NUMBER: _ClassVar[int]
    REMOVE_GROUP_FIELD_NUMBER: _ClassVar[int]
    MARK_NODE_FIELD_NUMBER: _ClassVar[int]
    END_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    RETIRE_FIELD_NUMBER: _ClassVar[int]
    MOVE_CURSORS_FIELD_NUMBER: _ClassVar[int]
    DELETE_CURSOR_FIELD_NUMBER: _ClassVar[int]
    READ_CURSORS_FIELD_NUMBER: _ClassVar[int]
    CHANGE_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    CANCEL_CHANGE_FIELD_NUMBER: _ClassVar[int]
    BEGIN_CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    RECORD_STARTED_FIELD_NUMBER: _ClassVar[int]
    RECORD_LOST_FIELD_NUMBER: _ClassVar[int]
    GIVE_UP_DISK_FIELD_NUMBER: _ClassVar[int]
    DRAIN_NODE_FIELD_NUMBER: _ClassVar[int]
    REMOVE_NODE_FIELD_NUMBER: _ClassVar[int]
    RAISE_LEVEL_FIELD_NUMBER: _ClassVar[int]
    DEFINE_VIEW_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_VIEW_FIELD_NUMBER: _ClassVar[int]
    NOTE_PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    UPDATE_GROUP_FIELD_NUMBER: _ClassVar[int]
    CREATE_GROUPS_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    found: FoundCluster
    register: RegisterNode
    create_domain: CreateDomain
    create_group: CreateGroup
    delete_group: DeleteGroup
    remove_group: RemoveGroup
    mark_node: MarkNode
    end_incarnation: EndIncarnation
    retire: RetireIncarnations
    move_cursors: MoveCursors
    delete_cursor: DeleteCursor
    read_cursors: ReadCursors
    change_replicas: ChangeReplicas
    cancel_change: CancelChange
    begin_configuration: BeginConfiguration
    record_started: RecordStarted
    record_lost: RecordLost
    give_up_disk: GiveUpDisk
    drain_node: DrainNode
    remove_node: RemoveNode
    raise_level: RaiseLevel
    define_view: DefineView
    complete_view: CompleteView
    note_protocols: NoteProtocols
    update_group: UpdateGroup
    create_groups: CreateGroups
    def __init__(self, request_id: _Optional[bytes] = ..., found: _Optional[_Union[FoundCluster, _Mapping]] = ..., register: _Optional[_Union[RegisterNode, _Mapping]] = ..., create_domain: _Optional[_Union[CreateDomain, _Mapping]] = ..., create_group: _Optional[_Union[CreateGroup, _Mapping]] = ..., delete_group: _Optional[_Union[DeleteGroup, _Mapping]] = ..., remove_group: _Optional[_Union[RemoveGroup, _Mapping]] = ..., mark_node: _Optional[_Union[MarkNode, _Mapping]] = ..., end_incarnation: _Optional[_Union[EndIncarnation, _Mapping]] = ..., retire: _Optional[_Union[RetireIncarnations, _Mapping]] = ..., move_cursors: _Optional[_Union[MoveCursors, _Mapping]] = ..., delete_cursor: _Optional[_Union[DeleteCursor, _Mapping]] = ..., read_cursors: _Optional[_Union[ReadCursors, _Mapping]] = ..., change_replicas: _Optional[_Union[ChangeReplicas, _Mapping]] = ..., cancel_change: _Optional[_Union[CancelChange, _Mapping]] = ..., begin_configuration: _Optional[_Union[BeginConfiguration, _Mapping]] = ..., record_started: _Optional[_Union[RecordStarted, _Mapping]] = ..., record_lost: _Optional[_Union[RecordLost, _Mapping]] = ..., give_up_disk: _Optional[_Union[GiveUpDisk, _Mapping]] = ..., drain_node: _Optional[_Union[DrainNode, _Mapping]] = ..., remove_node: _Optional[_Union[RemoveNode, _Mapping]] = ..., raise_level: _Optional[_Union[RaiseLevel, _Mapping]] = ..., define_view: _Optional[_Union[DefineView, _Mapping]] = ..., complete_view: _Optional[_Union[CompleteView, _Mapping]] = ..., note_protocols: _Optional[_Union[NoteProtocols, _Mapping]] = ..., update_group: _Optional[_Union[UpdateGroup, _Mapping]] = ..., create_groups: _Optional[_Union[CreateGroups, _Mapping]] = ...) -> None: ...

class CommandBatch(_message.Message):
    __slots__ = ("commands",)
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    commands: _containers.RepeatedCompositeFieldContainer[Command]
    def __init__(self, commands: _Optional[_Iterable[_Union[Command, _Mapping]]] = ...) -> None: ...

class Registered(_message.Message):
    __slots__ = ("incarnation", "cluster_id", "key")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    cluster_id: bytes
    key: bytes
    def __init__(self, incarnation: _Optional[int] = ..., cluster_id: _Optional[bytes] = ..., key: _Optional[bytes] = ...) -> None: ...

class CommandResult(_message.Message):
    __slots__ = ("code", "message", "revision", "registered", "domain", "group", "cursors", "node", "created")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CURSORS_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    revision: int
    registered: Registered
    domain: Domain
    group: Group
    cursors: _containers.RepeatedCompositeFieldContainer[Cursor]
    node: Node
    created: int
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., revision: _Optional[int] = ..., registered: _Optional[_Union[Registered, _Mapping]] = ..., domain: _Optional[_Union[Domain, _Mapping]] = ..., group: _Optional[_Union[Group, _Mapping]] = ..., cursors: _Optional[_Iterable[_Union[Cursor, _Mapping]]] = ..., node: _Optional[_Union[Node, _Mapping]] = ..., created: _Optional[int] = ...) -> None: ...

class ExecuteRequest(_message.Message):
    __slots__ = ("command",)
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    command: Command
    def __init__(self, command: _Optional[_Union[Command, _Mapping]] = ...) -> None: ...

class ExecuteResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: CommandResult
    def __init__(self, result: _Optional[_Union[CommandResult, _Mapping]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("revision", "only_revision", "only_cursors")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ONLY_REVISION_FIELD_NUMBER: _ClassVar[int]
    ONLY_CURSORS_FIELD_NUMBER: _ClassVar[int]
    revision: int
    only_revision: bool
    only_cursors: bool
    def __init__(self, revision: _Optional[int] = ..., only_revision: _Optional[bool] = ..., only_cursors: _Optional[bool] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("revision", "reset", "cluster_id", "nodes", "domains", "groups", "retired", "level", "cells", "group_last", "cursors")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    GROUP_LAST_FIELD_NUMBER: _ClassVar[int]
    CURSORS_FIELD_NUMBER: _ClassVar[int]
    revision: int
    reset: bool
    cluster_id: bytes
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    domains: _containers.RepeatedCompositeFieldContainer[Domain]
    groups: _containers.RepeatedCompositeFieldContainer[Group]
    retired: int
    level: int
    cells: _containers.RepeatedCompositeFieldContainer[Group]
    group_last: int
    cursors: _containers.RepeatedCompositeFieldContainer[Cursor]
    def __init__(self, revision: _Optional[int] = ..., reset: _Optional[bool] = ..., cluster_id: _Optional[bytes] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., domains: _Optional[_Iterable[_Union[Domain, _Mapping]]] = ..., groups: _Optional[_Iterable[_Union[Group, _Mapping]]] = ..., retired: _Optional[int] = ..., level: _Optional[int] = ..., cells: _Optional[_Iterable[_Union[Group, _Mapping]]] = ..., group_last: _Optional[int] = ..., cursors: _Optional[_Iterable[_Union[Cursor, _Mapping]]] = ...) -> None: ...

class GroupProgress(_message.Message):
    __slots__ = ("group", "configuration", "caught_up", "started", "position", "head", "epoch")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    group: str
    configuration: int
    caught_up: bool
    started: bool
    position: int
    head: int
    epoch: int
    def __init__(self, group: _Optional[str] = ..., configuration: _Optional[int] = ..., caught_up: _Optional[bool] = ..., started: _Optional[bool] = ..., position: _Optional[int] = ..., head: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("name", "incarnation", "revision", "oldest_open", "read_only", "clear_of", "leaving", "progress", "damaged", "level", "protocols")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    OLDEST_OPEN_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    CLEAR_OF_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    DAMAGED_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    name: str
    incarnation: int
    revision: int
    oldest_open: int
    read_only: bool
    clear_of: _containers.RepeatedScalarFieldContainer[str]
    leaving: bool
    progress: _containers.RepeatedCompositeFieldContainer[GroupProgress]
    damaged: _containers.RepeatedScalarFieldContainer[str]
    level: int
    protocols: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., incarnation: _Optional[int] = ..., revision: _Optional[int] = ..., oldest_open: _Optional[int] = ..., read_only: _Optional[bool] = ..., clear_of: _Optional[_Iterable[str]] = ..., leaving: _Optional[bool] = ..., progress: _Optional[_Iterable[_Union[GroupProgress, _Mapping]]] = ..., damaged: _Optional[_Iterable[str]] = ..., level: _Optional[int] = ..., protocols: _Optional[_Iterable[str]] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("incarnation", "ended")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    ended: bool
    def __init__(self, incarnation: _Optional[int] = ..., ended: _Optional[bool] = ...) -> None: ...

class NotLeader(_message.Message):
    __slots__ = ("leader",)
    LEADER_FIELD_NUMBER: _ClassVar[int]
    leader: str
    def __init__(self, leader: _Optional[str] = ...) -> None: ...
