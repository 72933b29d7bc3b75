"""PeerService: where other processes say who they are, and are told where to connect."""

from typing import TYPE_CHECKING, Any

import grpc
import structlog

from ordercast.runtime.process.waiting import waiting_here
from ordercast.runtime.transport.mesh import Mesh, Unwelcome
from ordercast.runtime.transport.tls import peer_address, peer_names
from ordercast.v1.frame_pb2 import (
    CHANNEL_DOMAINS,
    CHANNEL_MEMBERSHIP,
    DESCRIPTOR,
    ConnectRequest,
    ConnectResponse,
    Hello,
    TellWaitingRequest,
    TellWaitingResponse,
)
from ordercast.v1.frame_pb2_grpc import PeerServiceServicer, add_PeerServiceServicer_to_server

if TYPE_CHECKING:
    from ordercast.runtime.process.node import Node

log = structlog.get_logger("peers")


def serve_peers(node: "Node") -> None:
    service = DESCRIPTOR.services_by_name["PeerService"]
    node.peer_server.add(service, add_PeerServiceServicer_to_server, PeerService(node))


class PeerService(PeerServiceServicer):
    def __init__(self, node: "Node") -> None:
        self.node = node

    async def Connect(self, request: ConnectRequest, context: Any) -> ConnectResponse:  # noqa: N802 (as in the proto)
        """Identity is the certificate's, where there is one."""
        hello = request.hello
        names = peer_names(context)
        if names is not None and hello.process not in names:
            log.warning("refused peer", process=hello.process, certificate=names)
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "the certificate is another process's")
        try:
            mesh = self._mesh(hello)
            answer = await mesh.answer(hello)
        except Unwelcome as why:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(why))
        caller = hello.channel, hello.process
        address = peer_address(context)
        ticket = self.node.frames.ticket(caller, lambda wire: mesh.accept(hello, wire), address)
        return ConnectResponse(hello=answer, port=self.node.frames.port, ticket=ticket)

    async def TellWaiting(self, request: TellWaitingRequest, context: Any) -> TellWaitingResponse:  # noqa: N802 (as above)
        return TellWaitingResponse(waiting=waiting_here(self.node, request.domain))

    def _mesh(self, hello: Hello) -> Mesh:
        if hello.channel == CHANNEL_DOMAINS:
            return self.node.mesh
        if hello.channel == CHANNEL_MEMBERSHIP and self.node.system_mesh is not None:
            return self.node.system_mesh
        raise Unwelcome("no such channel here")
