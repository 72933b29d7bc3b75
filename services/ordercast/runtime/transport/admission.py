"""Who may call a port at all: with one authority for everything, a certificate that it signed may be a client's.

A mark in the certificate tells processes from clients: a URI among its alternative names (`tls.peer_uri`). The
issuer decides who gets it, as it decides who gets which name. Two authorities would do as well, but whoever has
one issuer (cert-manager's, or a company's) would have to run a second one, and nothing would tell that the wrong
one is in `peer_ca`. A certificate without the mark opens nothing, whoever signed it. Neither key usages nor the
subject would do: processes and clients may have the same key usages, and gRPC tells a server nothing of them.
"""

import time
from collections.abc import Collection
from typing import Any

import grpc
import structlog

from ordercast.runtime.transport.status import Refused
from ordercast.runtime.transport.tls import client_identity, peer_uris

log = structlog.get_logger("admission")

#: A line of the log for so many seconds: refused callers may come back as often as they like.
SAY_EVERY_S = 1.0


class Admission:
    """Refuses callers over TLS whose certificate names none of these URIs. Without TLS nobody is told apart."""

    def __init__(self, uris: Collection[str]) -> None:
        self._uris = frozenset(uris)
        self._said_at = float("-inf")
        self._unsaid = 0

    def __call__(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        shown = peer_uris(context)
        if shown is None or not self._uris.isdisjoint(shown):
            return
        self._say(context)
        wanted = " or ".join(sorted(self._uris))
        raise Refused(
            grpc.StatusCode.PERMISSION_DENIED,
            f"the certificate is nobody's who may call here: its alternative names lack the URI {wanted}",
            "NOT_ADMITTED",
        )

    def _say(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        now = time.monotonic()
        if now - self._said_at < SAY_EVERY_S:
            self._unsaid += 1
            return
        log.warning(
            "refused caller", certificate=client_identity(context), address=context.peer(), unsaid=self._unsaid
        )
        self._said_at, self._unsaid = now, 0
