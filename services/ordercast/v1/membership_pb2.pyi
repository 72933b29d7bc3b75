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
GROUP_STATE_UNSPECIFIED: GroupState
GROUP_STATE_ACTIVE: GroupState
GROUP_STATE_DELETING: GroupState
GROUP_STATE_DELETED: GroupState

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

class Node(_message.Message):
    __slots__ = ("name", "node_id", "services", "peer_address", "client_address", "zone", "incarnation", "suspected", "read_only", "revision", "ended")
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
    def __init__(self, name: _Optional[str] = ..., node_id: _Optional[bytes] = ..., services: _Optional[_Iterable[str]] = ..., peer_address: _Optional[str] = ..., client_address: _Optional[str] = ..., zone: _Optional[str] = ..., incarnation: _Optional[int] = ..., suspected: _Optional[bool] = ..., read_only: _Optional[bool] = ..., revision: _Optional[int] = ..., ended: _Optional[bool] = ...) -> None: ...

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
    __slots__ = ("name", "id", "domain", "configuration", "replicas", "acceptors", "state", "retention", "revision")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTORS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    name: str
    id: str
    domain: str
    configuration: int
    replicas: _containers.RepeatedScalarFieldContainer[str]
    acceptors: _containers.RepeatedScalarFieldContainer[str]
    state: GroupState
    retention: Retention
    revision: int
    def __init__(self, name: _Optional[str] = ..., id: _Optional[str] = ..., domain: _Optional[str] = ..., configuration: _Optional[int] = ..., replicas: _Optional[_Iterable[str]] = ..., acceptors: _Optional[_Iterable[str]] = ..., state: _Optional[_Union[GroupState, str]] = ..., retention: _Optional[_Union[Retention, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class Cursor(_message.Message):
    __slots__ = ("group", "name", "offset")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    group: str
    name: str
    offset: int
    def __init__(self, group: _Optional[str] = ..., name: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class ExecutedCommand(_message.Message):
    __slots__ = ("request_id", "result")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    result: CommandResult
    def __init__(self, request_id: _Optional[bytes] = ..., result: _Optional[_Union[CommandResult, _Mapping]] = ...) -> None: ...

class ClusterState(_message.Message):
    __slots__ = ("cluster_id", "key", "revision", "incarnation_last", "group_last", "retired", "nodes", "domains", "groups", "cursors", "executed", "deleted", "changes_since")
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
    def __init__(self, cluster_id: _Optional[bytes] = ..., key: _Optional[bytes] = ..., revision: _Optional[int] = ..., incarnation_last: _Optional[int] = ..., group_last: _Optional[int] = ..., retired: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., domains: _Optional[_Iterable[_Union[Domain, _Mapping]]] = ..., groups: _Optional[_Iterable[_Union[Group, _Mapping]]] = ..., cursors: _Optional[_Iterable[_Union[Cursor, _Mapping]]] = ..., executed: _Optional[_Iterable[_Union[ExecutedCommand, _Mapping]]] = ..., deleted: _Optional[_Iterable[_Union[Group, _Mapping]]] = ..., changes_since: _Optional[int] = ...) -> None: ...

class FoundCluster(_message.Message):
    __slots__ = ("cluster_id", "key")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    key: bytes
    def __init__(self, cluster_id: _Optional[bytes] = ..., key: _Optional[bytes] = ...) -> None: ...

class RegisterNode(_message.Message):
    __slots__ = ("name", "node_id", "services", "peer_address", "client_address", "zone", "cluster_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    node_id: bytes
    services: _containers.RepeatedScalarFieldContainer[str]
    peer_address: str
    client_address: str
    zone: str
    cluster_id: bytes
    def __init__(self, name: _Optional[str] = ..., node_id: _Optional[bytes] = ..., services: _Optional[_Iterable[str]] = ..., peer_address: _Optional[str] = ..., client_address: _Optional[str] = ..., zone: _Optional[str] = ..., cluster_id: _Optional[bytes] = ...) -> None: ...

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
    __slots__ = ("name", "domain", "replicas", "retention")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    domain: str
    replicas: int
    retention: Retention
    def __init__(self, name: _Optional[str] = ..., domain: _Optional[str] = ..., replicas: _Optional[int] = ..., retention: _Optional[_Union[Retention, _Mapping]] = ...) -> None: ...

class DeleteGroup(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class RemoveGroup(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("group", "name")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    group: str
    name: str
    def __init__(self, group: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ReadCursors(_message.Message):
    __slots__ = ("group", "name")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    group: str
    name: str
    def __init__(self, group: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("request_id", "found", "register", "create_domain", "create_group", "delete_group", "remove_group", "mark_node", "end_incarnation", "retire", "move_cursors", "delete_cursor", "read_cursors")
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
    def __init__(self, request_id: _Optional[bytes] = ..., found: _Optional[_Union[FoundCluster, _Mapping]] = ..., register: _Optional[_Union[RegisterNode, _Mapping]] = ..., create_domain: _Optional[_Union[CreateDomain, _Mapping]] = ..., create_group: _Optional[_Union[CreateGroup, _Mapping]] = ..., delete_group: _Optional[_Union[DeleteGroup, _Mapping]] = ..., remove_group: _Optional[_Union[RemoveGroup, _Mapping]] = ..., mark_node: _Optional[_Union[MarkNode, _Mapping]] = ..., end_incarnation: _Optional[_Union[EndIncarnation, _Mapping]] = ..., retire: _Optional[_Union[RetireIncarnations, _Mapping]] = ..., move_cursors: _Optional[_Union[MoveCursors, _Mapping]] = ..., delete_cursor: _Optional[_Union[DeleteCursor, _Mapping]] = ..., read_cursors: _Optional[_Union[ReadCursors, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("code", "message", "revision", "registered", "domain", "group", "cursors")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CURSORS_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    revision: int
    registered: Registered
    domain: Domain
    group: Group
    cursors: _containers.RepeatedCompositeFieldContainer[Cursor]
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., revision: _Optional[int] = ..., registered: _Optional[_Union[Registered, _Mapping]] = ..., domain: _Optional[_Union[Domain, _Mapping]] = ..., group: _Optional[_Union[Group, _Mapping]] = ..., cursors: _Optional[_Iterable[_Union[Cursor, _Mapping]]] = ...) -> None: ...

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
    __slots__ = ("revision",)
    REVISION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    def __init__(self, revision: _Optional[int] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("revision", "reset", "cluster_id", "nodes", "domains", "groups", "retired")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    revision: int
    reset: bool
    cluster_id: bytes
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    domains: _containers.RepeatedCompositeFieldContainer[Domain]
    groups: _containers.RepeatedCompositeFieldContainer[Group]
    retired: int
    def __init__(self, revision: _Optional[int] = ..., reset: _Optional[bool] = ..., cluster_id: _Optional[bytes] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., domains: _Optional[_Iterable[_Union[Domain, _Mapping]]] = ..., groups: _Optional[_Iterable[_Union[Group, _Mapping]]] = ..., retired: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("name", "incarnation", "revision", "oldest_open", "read_only", "clear_of", "leaving")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    OLDEST_OPEN_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    CLEAR_OF_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    name: str
    incarnation: int
    revision: int
    oldest_open: int
    read_only: bool
    clear_of: _containers.RepeatedScalarFieldContainer[str]
    leaving: bool
    def __init__(self, name: _Optional[str] = ..., incarnation: _Optional[int] = ..., revision: _Optional[int] = ..., oldest_open: _Optional[int] = ..., read_only: _Optional[bool] = ..., clear_of: _Optional[_Iterable[str]] = ..., leaving: _Optional[bool] = ...) -> None: ...

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
