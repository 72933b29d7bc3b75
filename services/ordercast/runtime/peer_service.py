"""PeerService: where the streams of other processes come in. Frames are passed on as bytes and parsed once."""

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import structlog
from google.protobuf.message import DecodeError

from ordercast.runtime.mesh import HELLO_S_MAX, Mesh, Unwelcome
from ordercast.runtime.tls import peer_names
from ordercast.v1.frame_pb2 import CHANNEL_DOMAINS, CHANNEL_MEMBERSHIP, DESCRIPTOR, Frame, Hello

if TYPE_CHECKING:
    from ordercast.runtime.node import Node

log = structlog.get_logger("peers")

SERVICE = DESCRIPTOR.services_by_name["PeerService"]


def serve_peers(node: "Node") -> None:
    node.peer_server.add(SERVICE, _register, PeerService(node))


def _register(servicer: "PeerService", server: grpc.aio.Server) -> None:
    """Without serialisers, so that frames stay bytes."""
    handler: Any = grpc.stream_stream_rpc_method_handler(servicer.exchange)
    generic = grpc.method_handlers_generic_handler(SERVICE.full_name, {"Exchange": handler})
    server.add_generic_rpc_handlers((generic,))


class PeerService:
    def __init__(self, node: "Node") -> None:
        self.node = node

    async def exchange(self, _: Any, context: Any) -> None:
        """The first frame says who calls. Identity is the certificate's, where there is one."""
        try:
            async with asyncio.timeout(HELLO_S_MAX):
                first = await context.read()
            if first is grpc.aio.EOF:
                return
            hello = Frame.FromString(first).hello
            mesh = self._mesh(hello)
            names = peer_names(context)
            if names is not None and hello.process not in names:
                log.warning("refused peer", process=hello.process, certificate=names)
                await context.abort(grpc.StatusCode.PERMISSION_DENIED, "the certificate is another process's")
            await mesh.serve(hello, context)
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not a frame")
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "no hello")
        except Unwelcome as why:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(why))

    def _mesh(self, hello: Hello) -> Mesh:
        if hello.channel == CHANNEL_DOMAINS:
            return self.node.mesh
        if hello.channel == CHANNEL_MEMBERSHIP and self.node.system_mesh is not None:
            return self.node.system_mesh
        raise Unwelcome("no such channel here")
