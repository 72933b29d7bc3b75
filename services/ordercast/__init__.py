"""Ordercast: total order for messages that are sent to any set of groups (genuine atomic multicast).

The SDK is loaded when it is first used: the services import this package too, and need none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordercast.client.aio import Connection, connect
    from ordercast.client.aio_merged import AsyncMergedDelivery, MergedSubscription
    from ordercast.client.aio_producer import Producer
    from ordercast.client.aio_subscription import AsyncDelivery, Subscription
    from ordercast.client.checkpoint import Checkpoint
    from ordercast.client.errors import OrdercastError
    from ordercast.client.merged_types import Cut, MergedDelivery
    from ordercast.client.sync import SyncConnection, connect_sync
    from ordercast.client.sync_merged import SyncMergedDelivery, SyncMergedSubscription
    from ordercast.client.sync_subscription import SyncDelivery, SyncSubscription
    from ordercast.client.types import TLS, Delivery, Receipt

    __version__: str

__all__ = [
    "TLS",
    "AsyncDelivery",
    "AsyncMergedDelivery",
    "Checkpoint",
    "Connection",
    "Cut",
    "Delivery",
    "MergedDelivery",
    "MergedSubscription",
    "OrdercastError",
    "Producer",
    "Receipt",
    "Subscription",
    "SyncConnection",
    "SyncDelivery",
    "SyncMergedDelivery",
    "SyncMergedSubscription",
    "SyncSubscription",
    "__version__",
    "connect",
    "connect_sync",
]

_HOMES = {
    "TLS": "types",
    "AsyncDelivery": "aio_subscription",
    "AsyncMergedDelivery": "aio_merged",
    "Checkpoint": "checkpoint",
    "Cut": "merged_types",
    "MergedDelivery": "merged_types",
    "MergedSubscription": "aio_merged",
    "SyncMergedDelivery": "sync_merged",
    "SyncMergedSubscription": "sync_merged",
    "Connection": "aio",
    "Delivery": "types",
    "OrdercastError": "errors",
    "Producer": "aio_producer",
    "Receipt": "types",
    "Subscription": "aio_subscription",
    "SyncConnection": "sync",
    "SyncDelivery": "sync_subscription",
    "SyncSubscription": "sync_subscription",
    "connect": "aio",
    "connect_sync": "sync",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("ordercast.errors")
    if name == "__version__":
        return import_module("ordercast.version").installed()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"ordercast.client.{_HOMES[name]}"), name)
