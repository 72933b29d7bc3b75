"""Subscriptions to several groups, for threads."""

from ordercast.client.merged_reader import Choice, MergedReader
from ordercast.client.merged_types import Cut, MergedDelivery
from ordercast.client.sync_subscription import DrivenSyncSubscription, SyncGateways
from ordercast.core.place import Place
from ordercast.v1.sequencer_pb2 import StartAt


class SyncMergedDelivery(MergedDelivery):
    __slots__ = ()

    def ack(self) -> None:
        """This message and all before it, in all groups, are processed: the cursor moves behind it, soon."""
        self._source._ack(self._place)


class SyncMergedSubscription(DrivenSyncSubscription[Place, SyncMergedDelivery]):
    """An iterator of the deliveries of several groups, in their domain's order. Use it with `with`."""

    def __init__(
        self,
        gateways: SyncGateways,
        choice: Choice,
        *,
        start: StartAt | Cut | None,
        cursor: str | None,
        until: Cut | None,
        stop_at_end: bool,
        timeout: float,
    ) -> None:
        super().__init__(gateways, timeout)
        self._reader = MergedReader(
            choice,
            SyncMergedDelivery,
            source=self,
            start=start,
            cursor=cursor,
            until=until,
            stop_at_end=stop_at_end,
        )

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """Groups that hold the stream up, if it has waited for a while: they may lack a quorum."""
        with self._changed:
            return self._reader.waiting_for
