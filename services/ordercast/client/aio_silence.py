"""Calls to a gateway that may hang, for asyncio: whoever waits for it looks at intervals whether it is alive."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import grpc.aio

from ordercast.client import transport
from ordercast.client.errors import Unavailable
from ordercast.core.silence import ALIVE_MS, LOOK_S, Silence

Result = TypeVar("Result")


async def attended(awaited: Awaitable[Result], silence: Silence) -> Result:
    """What it comes to; Unavailable as soon as the gateway has been silent for too long."""
    coming = asyncio.ensure_future(awaited)
    try:
        while not (await asyncio.wait((coming,), timeout=LOOK_S))[0]:
            if silence.look():
                raise Unavailable(transport.SILENT)
        return coming.result()
    finally:
        if not coming.done():
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


async def answered(channel: grpc.aio.Channel, call: Awaitable[Any], silence: Silence) -> Any:
    """The answer to a call that may take long, of a gateway that answers probes meanwhile."""
    probing = asyncio.create_task(_probe(channel, silence), name="ordercast probe")
    try:
        return await attended(call, silence)
    finally:
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)


async def _probe(channel: grpc.aio.Channel, silence: Silence) -> None:
    """Most calls are answered before the first probe."""
    probe: Any = channel.unary_unary(transport.PROBE)
    while True:
        await asyncio.sleep(LOOK_S)
        try:
            await probe(b"")
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                return  # It is gone, which the call itself tells.
        silence.heard(ALIVE_MS)
