"""Session tokens with whatever forms the protocols have that are installed here.

A token of a protocol that is not installed here is passed on as it is. Two of them become one with the parts of
both.
"""

from functools import partial
from typing import TYPE_CHECKING

from ordercast.core import session_token

if TYPE_CHECKING:
    from ordercast.core.protocol import SeenCodec


def _codec_of(seen: bytes) -> "SeenCodec | None":
    # Here, for clocks need no codec, and most clients never see anything else.
    from ordercast.protocols.catalogue import codec_of

    return codec_of(seen)


merge = partial(session_token.merge, codec_of=_codec_of)
parts_of = partial(session_token.parts_of, codec_of=_codec_of)
