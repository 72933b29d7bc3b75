"""How much of everything a request may bring: one table, and a check that needs no word of the services.

The shell around every server looks a request up here before anything else does. A field without a limit is an
error when the server starts. A service's own rules, such as which characters a name has, are not repeated here:
this is about how dear it may get to look at a request at all.

A check costs little where nothing can be wrong: no field is longer than its message, so of a small request most
limits need not be looked at, and payloads are not even touched.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from ordercast.core.session_token import TOKEN_BYTES_MAX
from ordercast.core.tracing import CONTEXT_BYTES

#: Names that users give to groups, domains, cursors, nodes.
NAME_CHARACTERS_MAX = 63
#: Ids that processes use among themselves: a name and a number, with something to spare.
ID_CHARACTERS_MAX = 128
ID_BYTES_MAX = 64
ADDRESS_CHARACTERS_MAX = 260
#: In one command or heartbeat. Membership has bounds of its own below these.
NODES_MAX = 1024
GROUPS_MAX = 4096
#: Groups that are being deleted of which one heartbeat speaks; the others have their turn later.
CLEAR_OF_MAX = 256
SETTING_CHARACTERS_MAX = 1024
SETTINGS_MAX = 64

PAYLOAD_BYTES_MAX = 1 << 20
#: Key and headers of one message together, as they are on the wire. A payload may have all its bytes beside them.
AROUND_BYTES_MAX = 64 << 10
#: As many as there is room for. So a request shorter than that need not be looked into, message by message.
HEADERS_MAX = AROUND_BYTES_MAX
#: What the SDK puts into one request at most, unless one message alone is longer. A gateway that is set to take
#: less has to look at such a request all the same: its messages come again one by one, and have a place to keep.
BATCH_MESSAGES_MAX = 512
BATCH_BYTES_MAX = 512 << 10
#: The numbers that say for which groups each of so many messages is.
TARGETS_MAX = BATCH_MESSAGES_MAX * 65
#: A longer list of messages nobody looks at. How many of them make one request too many is for gateways to say.
REQUEST_MESSAGES_MAX = 16_384
PRODUCER_BYTES_MAX = 160
OPEN_TOKEN_BYTES_MAX = 64
#: Groups of which a client asks at once where they live.
LOCATED_MAX = 1024
#: Groups that one subscription merges.
MERGED_GROUPS_MAX = 1024
#: Requests of one frame of a stream, and their bytes beside the largest of them.
FRAME_REQUESTS_MAX = 16_384
FRAME_BYTES_MAX = 8 << 20
COMMAND_BYTES_MAX = 64 << 10
#: Room for the ids of all that can be placed: once as deleted, once with their progress, once as damaged.
HEARTBEAT_BYTES_MAX = 384 << 10
#: Of any request: for fields that a newer client knows and we do not.
UNKNOWN_BYTES_MAX = 4 << 10

#: What a name and a length before each value take, at most.
_FIELD_BYTES = 12
#: Groups that one command makes.
CREATED_MAX = 256
_CHARACTER_BYTES = 4
_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Many:
    """Of a repeated field: how many, and, unless they are numbers or messages, how long each."""

    count: int
    each: int = 0


Limit = int | Many

#: By message: fields with a name, an id, a few bytes of an id.
_NAMES = {
    "SubscribeStart": "group cursor replica domain pattern",
    "CutRequest": "domain pattern",
    "SubscribeLiveRequest": "group replica",
    "CreateDomainRequest": "name protocol",
    "CreateGroupRequest": "name domain beside",
    "ListGroupsRequest": "domain after prefix",
    "ListCellsRequest": "domain",
    "DescribeGroupRequest": "name",
    "DeleteGroupRequest": "name",
    "UpdateGroupRequest": "name",
    "ListCursorsRequest": "group name domain",
    "DescribeWaitingRequest": "domain",
    "TellWaitingRequest": "domain",
    "SetCursorRequest": "group name domain",
    "DeleteCursorRequest": "group name domain",
    "ChangeReplicasRequest": "group node to",
    "CancelChangeRequest": "group",
    "DrainNodeRequest": "node",
    "RemoveNodeRequest": "node",
    "GiveUpDiskRequest": "node",
}
_IDS = {
    "RegisterNode": "name zone",
    "CreateDomain": "name protocol",
    "CreateGroup": "name domain beside",
    "DescribeCellRequest": "name",
    "DeleteGroup": "name",
    "UpdateGroup": "name",
    "RemoveGroup": "id",
    "MarkNode": "name",
    "EndIncarnation": "name",
    "Cursor": "group name domain",
    "DeleteCursor": "group name domain",
    "ReadCursors": "group name domain",
    "ChangeReplicas": "group node to",
    "CancelChange": "group",
    "BeginConfiguration": "group",
    "RecordStarted": "group",
    "RecordLost": "node",
    "GiveUpDisk": "node",
    "DrainNode": "node",
    "RemoveNode": "node",
    "RaiseLevel.IncarnationsEntry": "key",
    "DefineView": "group",
    "CompleteView": "group",
    "HeartbeatRequest": "name",
    "NoteProtocols": "node",
    "GroupProgress": "group",
    "ReadGroupRequest": "group",
    "ReadLiveRequest": "group",
    "DescribeReplicaRequest": "group",
    "ReadEntryRequest": "group",
    "Hello": "process to",
}
_ID_BYTES = {
    "ChangeReplicasRequest": "request_id",
    "CancelChangeRequest": "request_id",
    "RemoveNodeRequest": "request_id",
    "GiveUpDiskRequest": "request_id",
    "Command": "request_id",
    "FoundCluster": "cluster_id key",
    "RegisterNode": "node_id cluster_id",
    "Hello": "node_id cluster_id",
    "Place": "order_key",
    "DescribeReplicaRequest": "order_key",
    "AdvanceRequest": "order_key",
}


def _each(fields: Mapping[str, str], limit: int) -> dict[str, Limit]:
    return {f"{message}.{field}": limit for message, names in fields.items() for field in names.split()}


def request_bytes_max(envelope_bytes_max: int, groups_max: int) -> int:
    """With room for all that may stand around a payload that takes the whole envelope."""
    around = AROUND_BYTES_MAX + TOKEN_BYTES_MAX + groups_max * (ID_CHARACTERS_MAX + _FIELD_BYTES)
    return envelope_bytes_max + around + UNKNOWN_BYTES_MAX


#: What processes say to each other.
_BETWEEN_PROCESSES: dict[str, Limit] = {
    "Command": COMMAND_BYTES_MAX,
    "RegisterNode.services": Many(NODES_MAX, ID_CHARACTERS_MAX),
    "RegisterNode.protocols": Many(NODES_MAX, ID_CHARACTERS_MAX),
    "RegisterNode.peer_address": ADDRESS_CHARACTERS_MAX,
    "RegisterNode.client_address": ADDRESS_CHARACTERS_MAX,
    "MoveCursors.cursors": Many(NODES_MAX),
    "AdvanceRequest.cells": Many(GROUPS_MAX, ID_CHARACTERS_MAX),
    "CreateGroups.names": Many(CREATED_MAX, ID_CHARACTERS_MAX),
    "RecordStarted.members": Many(NODES_MAX, ID_CHARACTERS_MAX),
    "RecordLost.groups": Many(GROUPS_MAX, ID_CHARACTERS_MAX),
    "RaiseLevel.incarnations": Many(NODES_MAX),
    "DefineView.members": Many(NODES_MAX, ID_CHARACTERS_MAX),
    "DefineView.incarnations": Many(NODES_MAX),
    "DefineView.leaving": Many(NODES_MAX, ID_CHARACTERS_MAX),
    "HeartbeatRequest": HEARTBEAT_BYTES_MAX,
    "HeartbeatRequest.clear_of": Many(GROUPS_MAX, ID_CHARACTERS_MAX),
    "HeartbeatRequest.damaged": Many(GROUPS_MAX, ID_CHARACTERS_MAX),
    "HeartbeatRequest.protocols": Many(NODES_MAX, ID_CHARACTERS_MAX),
    "NoteProtocols.protocols": Many(NODES_MAX, ID_CHARACTERS_MAX),
    "HeartbeatRequest.progress": Many(GROUPS_MAX),
    "Hello.members": Many(NODES_MAX, ADDRESS_CHARACTERS_MAX + ID_CHARACTERS_MAX),
    "InjectRequest.deaf_to": Many(NODES_MAX, ID_CHARACTERS_MAX),
    "InjectRequest.mute_to": Many(NODES_MAX, ID_CHARACTERS_MAX),
}


def table(
    payload_bytes_max: int = PAYLOAD_BYTES_MAX,
    envelope_bytes_max: int = PAYLOAD_BYTES_MAX,
    messages_max: int = 1024,
    groups_max: int = 64,
) -> dict[str, Limit]:
    """By field: bytes, characters of a text, or Many. By message: bytes of all, where that is less than the sum.

    The arguments are what a process can be told; the rest is the same everywhere.
    """
    name, id_, setting = NAME_CHARACTERS_MAX, ID_CHARACTERS_MAX, SETTING_CHARACTERS_MAX
    of_request = request_bytes_max(max(envelope_bytes_max, BATCH_BYTES_MAX), groups_max)
    publishing: dict[str, Limit] = {
        "PublishRequest": of_request,
        "PublishRequest.producer": PRODUCER_BYTES_MAX,
        "PublishRequest.groups": Many(groups_max, name),
        "PublishRequest.cells": Many(groups_max, name),
        "PublishRequest.messages": Many(max(messages_max, REQUEST_MESSAGES_MAX)),
        "PublishRequest.session": TOKEN_BYTES_MAX,
        "PublishRequest.open_token": OPEN_TOKEN_BYTES_MAX,
        "PublishRequest.trace": CONTEXT_BYTES,
        "PublishRequest.batch": of_request,
        "PublishRequest.targets": Many(TARGETS_MAX),
        "PublishRequest.runs": Many(2 * BATCH_MESSAGES_MAX),
        "Message": payload_bytes_max + AROUND_BYTES_MAX,
        "Message.payload": payload_bytes_max,
        "Message.key": AROUND_BYTES_MAX,
        "Message.headers": Many(HEADERS_MAX),
        "MessageField.name": AROUND_BYTES_MAX,
        "MessageField.value": AROUND_BYTES_MAX,
        "PublishStreamRequest.requests": Many(FRAME_REQUESTS_MAX),
        "PublishStreamRequest.locate": Many(LOCATED_MAX, name),
        "SubscribeStart.groups": Many(MERGED_GROUPS_MAX, name),
        "CutRequest.groups": Many(MERGED_GROUPS_MAX, name),
        "CreateGroupsRequest.names": Many(CREATED_MAX, name),
    }
    publishing["PublishStreamRequest"] = FRAME_BYTES_MAX + of_request
    names = _each(_NAMES, name)
    ids = _each(_IDS, id_)
    id_bytes = _each(_ID_BYTES, ID_BYTES_MAX)
    settings: dict[str, Limit] = {}
    for owner in ("CreateDomainRequest", "CreateGroupRequest", "CreateDomain", "CreateGroup"):
        settings[f"{owner}.settings"] = Many(SETTINGS_MAX)
        settings[f"{owner}.SettingsEntry.key"] = settings[f"{owner}.SettingsEntry.value"] = setting
    ours = {**publishing, **names, **ids, **id_bytes, **settings, **_BETWEEN_PROCESSES}
    return {**{f"ordercast.v1.{field}": limit for field, limit in ours.items()}, **_OF_GRPC}


_REFLECTION = "grpc.reflection.v1alpha."
#: The services that every port has: health and reflection.
_OF_GRPC: dict[str, Limit] = {
    "grpc.health.v1.HealthCheckRequest.service": ADDRESS_CHARACTERS_MAX,
    **{
        f"{_REFLECTION}{field}": ADDRESS_CHARACTERS_MAX
        for field in (
            "ServerReflectionRequest.host",
            "ServerReflectionRequest.file_by_filename",
            "ServerReflectionRequest.file_containing_symbol",
            "ServerReflectionRequest.all_extension_numbers_of_type",
            "ServerReflectionRequest.list_services",
            "ExtensionRequest.containing_type",
        )
    },
}

#: What its reader checks one by one. The gateway's service looks so at the requests of a stream, since one that is
#: wrong costs none of the others. Its machine looks so at the messages of a request, since it remembers the place
#: of what comes again.
ONE_BY_ONE = ("ordercast.v1.PublishStreamRequest.requests", "ordercast.v1.PublishRequest.messages")


class NoLimit(LookupError):  # noqa: N818 (it names what is missing)
    """Of a field that has a length or a count."""


class TypeLimits:
    """What messages of one type may have."""

    def __init__(self, descriptor: Descriptor, limits: Mapping[str, Limit]) -> None:
        self.name = descriptor.name
        self.size_max = _NEVER
        #: Of a message that is no longer than this nothing is too much.
        self.floor: int = 0
        self._lengths: list[tuple[str, int]] = []
        self._texts: list[tuple[str, Many]] = []
        self._parts: list[tuple[str, TypeLimits]] = []
        self._rows: list[tuple[str, int, TypeLimits | None]] = []
        self._maps: list[tuple[str, int, int, int]] = []
        size = UNKNOWN_BYTES_MAX
        for field in descriptor.fields:
            size += self._add(field, limits)
        total = limits.get(descriptor.full_name)
        self.size_max = size if not isinstance(total, int) else total
        least = [limit for _, limit in self._lengths] + [min(many.count, many.each) for _, many in self._texts]
        least += [part.floor for _, part in self._parts]
        least += [min(count, _NEVER if row is None else row.floor) for _, count, row in self._rows]
        least += [min(count, key, value) for _, count, key, value in self._maps]
        self.floor = min([self.size_max, *least])

    def _add(self, field: FieldDescriptor, limits: Mapping[str, Limit]) -> int:
        """How many bytes the field may take."""
        is_text = field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
        entry = field.message_type
        if not is_text and not field.is_repeated:
            if entry is None:
                return _FIELD_BYTES
            self._parts.append((field.name, TypeLimits(entry, limits)))
            return _FIELD_BYTES + self._parts[-1][1].size_max
        limit = limits.get(field.full_name)
        if not field.is_repeated and isinstance(limit, int):
            self._lengths.append((field.name, limit))
            return _FIELD_BYTES + _width(field) * limit
        if not field.is_repeated or not isinstance(limit, Many) or is_text != bool(limit.each):
            raise NoLimit(f"{field.full_name} has no limit: it needs one in core/limits.py")
        if is_text:
            self._texts.append((field.name, limit))
            return limit.count * (_FIELD_BYTES + _width(field) * limit.each)
        if entry is not None and entry.GetOptions().map_entry:
            return self._add_map(field.name, limit.count, entry, limits)
        row = None if entry is None else TypeLimits(entry, limits)
        is_read_apart = field.full_name in ONE_BY_ONE
        self._rows.append((field.name, limit.count, None if is_read_apart else row))
        return limit.count * (_FIELD_BYTES + (0 if row is None else row.size_max))

    def _add_map(self, name: str, count: int, entry: Descriptor, limits: Mapping[str, Limit]) -> int:
        of_entry = TypeLimits(entry, limits)
        lengths = dict(of_entry._lengths)
        self._maps.append((name, count, lengths.get("key", _NEVER), lengths.get("value", _NEVER)))
        return count * (_FIELD_BYTES + of_entry.size_max)

    def violation(self, message: Any, size: int) -> str:
        """What is too much in it, as a sentence; nothing if all is within limits. `size`: of it, or more."""
        if size <= self.floor:
            return ""
        for field, length_max in self._lengths:
            if size > length_max and (length := len(getattr(message, field))) > length_max:
                return f"{field} of {self.name} has a length of {length}; at most {length_max}"
        if size > self.size_max and (own := message.ByteSize()) > self.size_max:
            return f"{self.name} has {own} bytes; at most {self.size_max}"
        for field, many in self._texts:
            if said := self._in_texts(field, getattr(message, field), many.count, many.each):
                return said
        for field, count_max, row in self._rows:
            if said := self._in_rows(field, getattr(message, field), count_max, row, size):
                return said
        for field, part in self._parts:
            if (
                size > part.floor
                and message.HasField(field)
                and (said := part.violation(getattr(message, field), size))
            ):
                return said
        for field, count_max, key_max, value_max in self._maps:
            pairs = getattr(message, field)
            said = self._in_texts(field, pairs, count_max, key_max)
            if (
                said := said
                or (value_max < _NEVER and self._in_texts(field, pairs.values(), count_max, value_max))
                or ""
            ):
                return said
        return ""

    def _in_texts(self, field: str, texts: Any, count_max: int, each_max: int) -> str:
        if len(texts) > count_max:
            return f"{field} of {self.name} has {len(texts)} entries; at most {count_max}"
        longest = max(map(len, texts), default=0)
        if longest > each_max:
            return f"an entry of {field} of {self.name} has a length of {longest}; at most {each_max}"
        return ""

    def _in_rows(self, field: str, rows: Any, count_max: int, row: "TypeLimits | None", size: int) -> str:
        if len(rows) > count_max:
            return f"{field} of {self.name} has {len(rows)} entries; at most {count_max}"
        if row is not None and size > row.floor:
            for one in rows:
                if said := row.violation(one, size):
                    return said
        return ""


def _width(field: FieldDescriptor) -> int:
    return _CHARACTER_BYTES if field.type == FieldDescriptor.TYPE_STRING else 1


class Limits:
    """Of one process: made from the table when a server starts, by type of request."""

    def __init__(self, limits: Mapping[str, Limit] | None = None) -> None:
        self._table = table() if limits is None else limits
        self._types: dict[str, TypeLimits] = {}

    def of(self, descriptor: Any) -> TypeLimits:
        found = self._types.get(descriptor.full_name)
        if found is None:
            found = self._types[descriptor.full_name] = TypeLimits(descriptor, self._table)
        return found

    def receive_bytes_max(self, requests: Iterable[Descriptor]) -> int:
        """What a server has to take in that has these requests."""
        return max((self.of(request).size_max for request in requests), default=UNKNOWN_BYTES_MAX)
