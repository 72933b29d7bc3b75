"""Groups for a run."""

from collections.abc import Sequence

import grpc

from ordercast.v1.gateway_pb2 import CreateGroupRequest
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub


def create_groups(gateways: Sequence[str], names: Sequence[str], replicas: int = 0) -> None:
    with grpc.insecure_channel(gateways[0]) as channel:
        stub = GatewayServiceStub(channel)
        for name in names:
            stub.CreateGroup(CreateGroupRequest(name=name, replicas=replicas), timeout=20, wait_for_ready=True)
