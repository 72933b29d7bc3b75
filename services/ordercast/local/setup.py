"""Domains and groups for a run."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence

import grpc
from google.protobuf.message import Message

from ordercast.v1.gateway_pb2 import CreateDomainRequest, CreateGroupRequest
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub

CREATE_S_MAX = 30.0
RETRY_S = 0.1
#: The cluster is not ready for it, or nobody leads at this moment.
EARLY = (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAVAILABLE)


def create_domain(gateways: Sequence[str], name: str, protocol: str, settings: Mapping[str, str]) -> None:
    """A cluster that has just started may not know yet that all of its nodes understand the protocol."""
    request = CreateDomainRequest(name=name, protocol=protocol, settings=settings)
    with grpc.insecure_channel(gateways[0]) as channel:
        _create(GatewayServiceStub(channel).CreateDomain, request)


def create_groups(
    gateways: Sequence[str],
    names: Sequence[str],
    replicas: int = 0,
    domain: str = "",
    *,
    shared: Collection[str] = (),
    cells: int = 1,
) -> None:
    """On a busy machine a node may be suspected for a moment, and then too few could take a replica.

    Those that are `shared` live in so many cells, in turn; the others have one each.
    """
    with grpc.insecure_channel(gateways[0]) as channel:
        stub = GatewayServiceStub(channel)
        #: The first group of each cell.
        first: list[str] = []
        for name in names:
            request = CreateGroupRequest(name=name, domain=domain, replicas=replicas)
            if name not in shared:
                request.own_cell = True
            elif len(first) < cells:
                request.shared, request.new_cell = not first, bool(first)
                first.append(name)
            else:
                request.beside = first[0]
                first.append(first.pop(0))
            _create(stub.CreateGroup, request)


def _create(call: Callable[..., Message], request: Message) -> None:
    """Until the cluster is ready for it."""
    deadline = time.monotonic() + CREATE_S_MAX
    is_unknown = False
    while True:
        try:
            call(request, timeout=CREATE_S_MAX, wait_for_ready=True)
        except grpc.RpcError as error:
            code = error.code()  # type: ignore[attr-defined]
            if code == grpc.StatusCode.ALREADY_EXISTS and is_unknown:
                return
            if code not in EARLY or time.monotonic() > deadline:
                raise
            # It may have been made all the same, by a leader that did not live to say so.
            is_unknown = is_unknown or code == grpc.StatusCode.UNAVAILABLE
            time.sleep(RETRY_S)
        else:
            return
