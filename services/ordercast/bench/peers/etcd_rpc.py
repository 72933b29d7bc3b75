"""The few calls of etcd's gRPC interface that the bench makes, described at run time.

Numbers and types of the fields are those that etcd publishes for version 3. What we do not look at is left out,
and skipped when it is read.
"""

from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bytes": _FIELD.TYPE_BYTES,
    "bool": _FIELD.TYPE_BOOL,
    "int64": _FIELD.TYPE_INT64,
    "uint64": _FIELD.TYPE_UINT64,
}
_PACKAGE = "etcdserverpb"

#: Message: field: (number, type); `*` before a type means repeated.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "ResponseHeader": {"member_id": (2, "uint64")},
    "PutRequest": {"key": (1, "bytes"), "value": (2, "bytes")},
    "PutResponse": {"header": (1, "ResponseHeader")},
    "RequestOp": {"request_put": (2, "PutRequest")},
    "TxnRequest": {"success": (2, "*RequestOp")},
    "TxnResponse": {"header": (1, "ResponseHeader"), "succeeded": (2, "bool")},
    "RangeRequest": {"key": (1, "bytes"), "range_end": (2, "bytes"), "count_only": (9, "bool")},
    "RangeResponse": {"header": (1, "ResponseHeader"), "count": (4, "int64")},
    "StatusRequest": {},
    "StatusResponse": {"header": (1, "ResponseHeader"), "leader": (4, "uint64")},
}

_CALLS = {
    "Put": ("KV", "PutRequest", "PutResponse"),
    "Txn": ("KV", "TxnRequest", "TxnResponse"),
    "Range": ("KV", "RangeRequest", "RangeResponse"),
    "Status": ("Maintenance", "StatusRequest", "StatusResponse"),
}


def _classes() -> dict[str, type[Message]]:
    file = descriptor_pb2.FileDescriptorProto(name="etcd.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            base = kind.removeprefix("*")
            message.field.add(
                name=field,
                number=number,
                label=_FIELD.LABEL_REPEATED if kind.startswith("*") else _FIELD.LABEL_OPTIONAL,
                type=_SCALARS.get(base, _FIELD.TYPE_MESSAGE),
                type_name=None if base in _SCALARS else f".{_PACKAGE}.{base}",
            )
    # A pool of its own: a program may have loaded etcd's real description as well.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_CLASSES = _classes()


def message(name: str, **fields: Any) -> Any:
    return _CLASSES[name](**fields)


def call(channel: grpc.Channel | grpc.aio.Channel, name: str) -> Any:
    """`call(channel, "Put")(message("PutRequest", ...))`; with a channel of grpc.aio, to be awaited."""
    service, request, response = _CALLS[name]
    return channel.unary_unary(
        f"/{_PACKAGE}.{service}/{name}",
        request_serializer=_CLASSES[request].SerializeToString,
        response_deserializer=_CLASSES[response].FromString,
    )
