"""The table of limits: every field of every request has one, and the check finds what is above it."""

import importlib
import pkgutil

import pytest
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

import ordercast.v1
from ordercast.core import limits as limits_module
from ordercast.core.limits import Limits, Many, NoLimit, table
from ordercast.v1.common_pb2 import Message, MessageField
from ordercast.v1.gateway_pb2 import CreateGroupRequest, PublishRequest, PublishStreamRequest
from ordercast.v1.membership_pb2 import Command, ExecuteRequest, HeartbeatRequest, ReadCursors

FILES = [
    importlib.import_module(f"ordercast.v1.{module.name}")
    for module in pkgutil.iter_modules(ordercast.v1.__path__)
    if module.name.endswith("_pb2")
]
METHODS = [
    method
    for file in (*FILES, health_pb2, reflection_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]


def violation(request, **told):
    return Limits(table(**told)).of(request.DESCRIPTOR).violation(request, request.ByteSize())


def fields_of(descriptor, path=()):
    """(path of messages to it, field), for all that have a length or a count."""
    for field in descriptor.fields:
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if field.is_repeated or field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            yield path, field
        if field.message_type is not None and not is_map:
            yield from fields_of(field.message_type, (*path, field))


def filled(descriptor, path, field, limit):
    """A request in which one field has one more than it may have."""
    request = GetMessageClass(descriptor)()
    at = request
    for step in path:
        at = getattr(at, step.name).add() if step.is_repeated else getattr(at, step.name)
    count = limit.count + 1 if isinstance(limit, Many) else limit + 1
    if not isinstance(limit, Many):
        setattr(at, field.name, "x" * count if field.type == field.TYPE_STRING else bytes(count))
    elif field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_numbers = field.message_type.fields_by_name["value"].type != field.TYPE_STRING
        getattr(at, field.name).update({str(number): 0 if of_numbers else "" for number in range(count)})
    elif field.message_type is not None:
        getattr(at, field.name).extend([GetMessageClass(field.message_type)()] * count)
    else:
        getattr(at, field.name).extend(["x" if limit.each else 1] * count)
    return request


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.full_name)
def test_every_field_of_every_request_has_a_limit_and_it_is_checked(method):
    known = table()
    assert Limits().of(method.input_type).size_max < 16 << 20
    for path, field in fields_of(method.input_type):
        limit = known[field.full_name]
        apart = [index for index, step in enumerate(path) if step.full_name in limits_module.ONE_BY_ONE]
        # What is looked at apart is looked at by its own type.
        of_type = path[apart[-1]].message_type if apart else method.input_type
        within = path[apart[-1] + 1 :] if apart else path
        assert violation(filled(of_type, within, field, limit)), field.full_name


def test_nothing_in_the_table_is_left_over():
    used = {field.full_name for method in METHODS for _, field in fields_of(method.input_type)}
    messages = {name.rpartition(".")[0] for name in used}
    messages |= {
        step.message_type.full_name for m in METHODS for path, _ in fields_of(m.input_type) for step in path
    }
    of_entries = {name for name in table() if "Entry." in name}
    assert set(table()) - used - messages - of_entries == set()


def test_a_field_without_a_limit_is_found_when_a_server_starts():
    known = table()
    del known["ordercast.v1.PublishRequest.open_token"]
    with pytest.raises(NoLimit, match="open_token"):
        Limits(known).of(PublishStreamRequest.DESCRIPTOR)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (PublishRequest(open_token=bytes(65)), "open_token of PublishRequest has a length of 65; at most 64"),
        (PublishRequest(groups=["g"] * 65), "groups of PublishRequest has 65 entries; at most 64"),
        (PublishRequest(groups=["g" * 64]), "an entry of groups of PublishRequest has a length of 64; at most 63"),
        (CreateGroupRequest(settings={"a": "b" * 1025}), "an entry of settings of CreateGroupRequest"),
        (ExecuteRequest(command=Command(read_cursors=ReadCursors(group="g" * 129))), "group of ReadCursors"),
    ],
)
def test_a_violation_names_field_and_limit(request_, said):
    assert said in violation(request_)


def test_a_heartbeat_has_room_for_all_groups_and_no_more():
    names = ["g" * 63] * limits_module.GROUPS_MAX
    assert violation(HeartbeatRequest(clear_of=names)) == ""
    request = HeartbeatRequest(clear_of=names, damaged=names)
    assert f"HeartbeatRequest has {request.ByteSize()} bytes" in violation(request)


def largest_message():
    around = limits_module.AROUND_BYTES_MAX - 64
    message = Message(payload=bytes(limits_module.PAYLOAD_BYTES_MAX), key=bytes(around // 2))
    message.headers.append(MessageField(name="h", value=bytes(around // 2)))
    return message


def test_a_payload_of_exactly_the_limit_fits_with_all_that_may_stand_around_it():
    names = [f"{number:063}" for number in range(64)]
    full = PublishRequest(groups=names, producer=bytes(160), trace=bytes(25), messages=[largest_message()])
    full.session = bytes(limits_module.TOKEN_BYTES_MAX)
    assert violation(full) == ""
    (message,) = full.messages
    assert violation(message) == ""
    message.payload += b"x"
    assert "payload of Message has a length of 1048577; at most 1048576" in violation(message)


def test_keys_and_headers_have_a_limit_together():
    message = largest_message()
    message.headers.append(MessageField(value=bytes(1000)))
    assert "Message has" in violation(message)


def test_limits_follow_what_a_process_was_told():
    request = PublishRequest(groups=["a", "b"], messages=[Message(payload=bytes(101))])
    assert "groups" in violation(request, groups_max=1)
    assert "payload" in violation(request.messages[0], payload_bytes_max=100)
    assert violation(request.messages[0], payload_bytes_max=101) == ""
    assert violation(request, groups_max=2) == ""
    large = Limits(table(payload_bytes_max=32 << 20, envelope_bytes_max=32 << 20))
    assert large.receive_bytes_max([PublishStreamRequest.DESCRIPTOR]) > 32 << 20
