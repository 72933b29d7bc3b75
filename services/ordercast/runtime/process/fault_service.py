"""FaultService: faults on demand, for tests and chaos runs. Only where the settings ask for it."""

from typing import TYPE_CHECKING, Any

import structlog

from ordercast.runtime.storage.writer import DiskFaults
from ordercast.v1.faults_pb2 import DESCRIPTOR, InjectRequest, InjectResponse
from ordercast.v1.faults_pb2_grpc import FaultServiceServicer, add_FaultServiceServicer_to_server

if TYPE_CHECKING:
    from ordercast.runtime.process.node import Node

log = structlog.get_logger("faults")


def serve_faults(node: "Node") -> None:
    service = DESCRIPTOR.services_by_name["FaultService"]
    node.peer_server.add(service, add_FaultServiceServicer_to_server, FaultServer(node))


class FaultServer(FaultServiceServicer):
    def __init__(self, node: "Node") -> None:
        self.node = node

    async def Inject(self, request: InjectRequest, context: Any) -> InjectResponse:  # noqa: N802 (gRPC's name)
        node = self.node
        log.warning("faults injected", faults=str(request).replace("\n", " "))
        deaf_to, mute_to = frozenset(request.deaf_to), frozenset(request.mute_to)
        for mesh in (node.mesh, node.system_mesh):
            if mesh is not None:
                mesh.inject(deaf_to, mute_to)
        node.directory.cut_off = deaf_to | mute_to
        node.writer.faults = DiskFaults(
            delay_s=request.disk_delay_s,
            fsync_fails=request.fsync_fails,
            answer_before_sync_s=request.answer_before_sync_s,
        )
        node.clock.wall_offset_s = request.wall_offset_s
        return InjectResponse()
