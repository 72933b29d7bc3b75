"""The keys under which a process persists what it must not forget. What is about logs has other ones (celllog/).

m<view><place><number>   DagMessage   received in that view, and not dropped
v                        DagRecord    the view that the process is in
f                        DagCut       how that view ends, until the next one is complete
"""

import struct

from ordercast.protocols.toto.ballot import Key

MESSAGE, VIEW, CUT = b"m", b"v", b"f"
_MESSAGE = struct.Struct(">QIQ")


def message(view: int, key: Key) -> bytes:
    return MESSAGE + _MESSAGE.pack(view, *key)
