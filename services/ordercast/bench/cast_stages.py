"""Where the time of a message goes in a domain of virtually synchronous groups.

As in stages.py, from the marks of all processes. But a receipt does not tell which envelope it was in: offsets
do, once the log is read.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import grpc

from ordercast.bench.meter import Meter
from ordercast.runtime.telemetry.envelope_stages import Marks
from ordercast.v1.gateway_pb2 import SubscribeRequest, SubscribeStart
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub
from ordercast.v1.sequencer_pb2 import LogEntry, StartAt

CLIENT = "client to gateway and back"
#: Between the moments of `CastWay.moments`, in their order.
WITHIN = (
    "waiting for an envelope",
    "to the member that casts",
    "waiting to speak",
    "to the other groups",
    "disks, place and receipt",
)
STAGES = (CLIENT, *WITHIN)

READ_S_MAX = 60.0


@dataclass(frozen=True, slots=True)
class CastWay:
    """Of one envelope, from the client and back."""

    total_s: float
    #: Of the monotonic clock: accepted, submitted, there at the member that casts, cast, cast in all groups,
    #: answered, which is when a majority of each group has it on disk, with its place.
    moments: tuple[float, ...]

    def spent_s(self) -> dict[str, float]:
        # A process notes that it sent something when it has, and itself receives it a moment before that.
        moments = list(accumulate(self.moments, max))
        within = [later - earlier for earlier, later in pairwise(moments)]
        return dict(zip(STAGES, (self.total_s - sum(within), *within), strict=True))


def way_of(total_s: float, seen: Sequence[Marks]) -> CastWay | None:
    """From the marks of all processes; None if one of them has forgotten what is needed."""
    gateway = next((marks for marks in seen if "answered" in marks and "submit" in marks), None)
    # After a silence another member may have got it too. The first one was asked first.
    casters = [marks for marks in seen if "submitted" in marks and "cast" in marks]
    if gateway is None or not casters:
        return None
    caster = min(casters, key=lambda marks: marks["submitted"][1])
    parts = [marks["part cast"][1] for marks in seen if "part cast" in marks]
    accepted, submitted = gateway["submit"]
    there, cast = caster["submitted"][1], caster["cast"][1]
    moments = (accepted, submitted, there, cast, max([cast, *parts]), gateway["answered"][1])
    return CastWay(total_s, moments)


# ------------------------------------------------------------------------------------- the client's process


class OffsetMeter(Meter):
    """Also knows of each offset of a group when its message was published, and how long that took."""

    def __init__(self, group: str, gateway: str) -> None:
        super().__init__()
        self._group = group
        self._gateway = gateway
        self.offsets: dict[int, tuple[float, float]] = {}

    def settle(self, begun: float, room: asyncio.Semaphore, soon: "asyncio.Future[Any]") -> None:
        super().settle(begun, room, soon)
        if soon.exception() is None:
            self.offsets[soon.result().offsets[self._group]] = (begun, time.perf_counter() - begun)

    async def all_envelopes(self) -> dict[bytes, tuple[float, float]]:
        """Of each envelope's first message, which waited longest."""
        found = {}
        start = SubscribeStart(group=self._group, stop_at_end=True, start=StartAt(earliest=True))
        async with grpc.aio.insecure_channel(self._gateway) as channel:
            requests = iter([SubscribeRequest(start=start)])
            async for response in GatewayServiceStub(channel).Subscribe(requests, timeout=READ_S_MAX):
                for data in response.deliveries.entries:
                    entry = LogEntry.FromString(data)
                    if entry.first_offset in self.offsets:
                        found[entry.envelope.header.id] = self.offsets[entry.first_offset]
        return found
