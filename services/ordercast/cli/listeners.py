"""Whether anybody listens where a command is about to look: without a cluster, there is an answer at once."""

import contextlib
import socket
from collections.abc import Sequence

#: Whoever has not refused by then may be far away, or busy: that is not nobody.
LOOK_S = 0.5


def reasons_for_nobody(addresses: Sequence[str]) -> list[str]:
    """Why each of them cannot be reached; nothing, if one of them can, or may be.

    >>> reasons_for_nobody(["127.0.0.1:1"])
    ['nobody listens at 127.0.0.1:1']
    """
    reasons = []
    for address in addresses:
        reason = _reason(address)
        if reason is None:
            return []
        reasons.append(reason)
    return reasons


def _reason(address: str) -> str | None:
    host, _, port = address.rpartition(":")
    try:
        with contextlib.closing(socket.create_connection((host.strip("[]"), int(port)), timeout=LOOK_S)):
            return None
    except ConnectionRefusedError:
        return f"nobody listens at {address}"
    except socket.gaierror:
        return f"no host has the name of {address}"
    except OSError:
        # No route, no answer yet: what the connection itself meets says more.
        return None
