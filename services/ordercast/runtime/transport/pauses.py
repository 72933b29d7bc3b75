"""Streams on which it matters that nothing comes."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TypeVar

from ordercast.core.silence import ALIVE_S

Response = TypeVar("Response")


async def with_pauses(
    responses: AsyncGenerator[Response, None], pause_s: float
) -> AsyncGenerator[Response | None, None]:
    """All of them, and None whenever nothing came for so long. Closing it closes what it reads."""
    coming: asyncio.Future[Response] | None = None
    try:
        while True:
            coming = asyncio.ensure_future(anext(responses))
            while not (await asyncio.wait((coming,), timeout=pause_s))[0]:
                yield None
            yield coming.result()
    except StopAsyncIteration:
        return
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        await responses.aclose()


async def with_signs_of_life(
    responses: AsyncGenerator[Response, None], sign: Response
) -> AsyncGenerator[Response, None]:
    """All of them; and the sign of life, at once and whenever there is nothing else to say.

    Nothing is made for a reader that does not read: the next response is asked for when the last one is taken.
    """
    yield sign
    pausing = with_pauses(responses, ALIVE_S)
    try:
        async for response in pausing:
            yield sign if response is None else response
    finally:
        await pausing.aclose()
