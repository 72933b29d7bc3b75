"""Calls to a gateway, as far as it asks who makes them."""

from types import SimpleNamespace
from typing import Any


def context_of(peer: str, identity: str | None = None) -> Any:
    auth = {"transport_security_type": [b"ssl"], "x509_common_name": [identity.encode()]} if identity else {}
    return SimpleNamespace(auth_context=lambda: auth, peer=lambda: peer)
