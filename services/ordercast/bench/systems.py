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
from ordercast.bench.plan import Pattern, Plan
from ordercast.bench.servers import Servers

#: Runs the servers, with their data in the directory, ready for clients.
Running = Callable[[Path, Plan, Pattern], AbstractContextManager[Servers]]
#: Keeps so many messages in flight until it is told to stop, then waits for what is open.
Produce = Callable[[Servers, Plan, Pattern, int, Meter, asyncio.Event], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class System:
    running: Running
    produce: Produce


OWN = "ordercast"
PEERS = {"etcd": System(etcd.running, etcd.produce), "nats": System(nats.running, nats.produce)}
SYSTEMS = {OWN: System(own.running, own.produce), **PEERS}
