"""The spool as the place for records."""

import grpc

from ordercast.telemetry import meters as reasons
from ordercast.telemetry.meters import Meters
from ordercast.telemetry.receiver import NotTaken
from ordercast.telemetry.settings import Settable
from ordercast.telemetry.spool.intake import BusyError, FullError, IntakeLimits
from ordercast.telemetry.spool.spool import Keeping, Spool

#: Somebody has to make room, and that takes a while.
FULL_RETRY_S = 10.0


class SpoolSink:
    def __init__(self, settings: Settable, meters: Meters) -> None:
        assert settings.data is not None
        limits = IntakeLimits(
            segment_bytes=settings.segment_bytes,
            seal_s=settings.seal_s,
            queue_bytes_max=settings.queue_bytes_max,
            reserve_bytes=settings.reserve_bytes,
        )
        keeping = Keeping(
            retention_bytes=settings.retention_bytes,
            retention_age_s=settings.retention_age_s or None,
            unsealed_bytes_max=settings.unsealed_bytes_max,
        )
        self.spool = Spool(settings.data, limits, keeping, meters)

    def start(self) -> None:
        self.spool.start()

    async def stop(self) -> None:
        await self.spool.stop()

    async def take(self, signal: str, payload: bytes, count: int) -> bool:
        code = grpc.StatusCode.RESOURCE_EXHAUSTED
        try:
            return await self.spool.take(signal, payload, count)
        except BusyError as error:
            raise NotTaken(code, str(error), reasons.BUSY, error.retry_after_s) from error
        except FullError as error:
            raise NotTaken(code, str(error), reasons.FULL, FULL_RETRY_S) from error
