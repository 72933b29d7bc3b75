"""All systems that can be measured, ours and its peers, behind one interface."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordercast.bench import own
from ordercast.bench.meter import Meter
from ordercast.bench.peers import etcd, nats
from ordercast.bench.plan import CELLS_SIX, RANDOM_SETS, SAME, BenchPlan, Pattern
from ordercast.bench.servers import Servers

#: Runs the servers, with their data in the directory, ready for clients.
Running = Callable[[Path, BenchPlan, Pattern], AbstractContextManager[Servers]]
#: Keeps so many messages in flight until it is told to stop, then waits for what is open.
Produce = Callable[[Servers, BenchPlan, Pattern, int, Meter, asyncio.Event], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class System:
    running: Running
    produce: Produce


@dataclass(frozen=True, slots=True)
class PeerSystem(System):
    #: Those in which it has something to compare.
    patterns: tuple[str, ...]


OWN = "ordercast"
PEERS = {
    "etcd": PeerSystem(etcd.running, etcd.produce, (*RANDOM_SETS, CELLS_SIX, SAME)),
    "nats": PeerSystem(nats.running, nats.produce, (SAME,)),
}
SYSTEMS: dict[str, System] = {OWN: System(own.running, own.produce), **PEERS}
