"""Domains and groups for a run."""

import time
from collections.abc import Callable, Mapping, Sequence

import grpc
from google.protobuf.message import Message

from ordercast.v1.gateway_pb2 import CreateDomainRequest, CreateGroupRequest
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub

CREATE_S_MAX = 20.0
RETRY_S = 0.1


def create_domain(gateways: Sequence[str], name: str, protocol: str, settings: Mapping[str, str]) -> None:
    """A cluster that has just started may not know yet that all of its nodes understand the protocol."""
    request = CreateDomainRequest(name=name, protocol=protocol, settings=settings)
    with grpc.insecure_channel(gateways[0]) as channel:
        _create(GatewayServiceStub(channel).CreateDomain, request)


def create_groups(gateways: Sequence[str], names: Sequence[str], replicas: int = 0, domain: str = "") -> None:
    """On a busy machine a node may be suspected for a moment, and then too few could take a replica."""
    with grpc.insecure_channel(gateways[0]) as channel:
        stub = GatewayServiceStub(channel)
        for name in names:
            _create(stub.CreateGroup, CreateGroupRequest(name=name, domain=domain, replicas=replicas))


def _create(call: Callable[..., Message], request: Message) -> None:
    """Until the cluster is ready for it."""
    deadline = time.monotonic() + CREATE_S_MAX
    while True:
        try:
            call(request, timeout=CREATE_S_MAX, wait_for_ready=True)
        except grpc.RpcError as error:
            is_early = error.code() == grpc.StatusCode.FAILED_PRECONDITION  # type: ignore[attr-defined]
            if not is_early or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)
        else:
            return
