"""Session tokens with whatever forms the protocols have that are installed here.

A token of a protocol that is not installed here is passed on as it is. Two of them become one with the parts of
both.
"""

from functools import partial

from ordercast.core import session_token
from ordercast.protocols.catalogue import codec_of

merge = partial(session_token.merge, codec_of=codec_of)
parts_of = partial(session_token.parts_of, codec_of=codec_of)
