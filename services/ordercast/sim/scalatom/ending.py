"""What is left of a run of SCALATOM once everything has come to rest: nothing but what is bounded by a setting."""

from collections.abc import Iterable
from typing import Any

from ordercast.core.machine import NamesGroups
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.scalatom import records
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.world import World

#: What is empty then, by role.
EMPTY = {"scalatom": ("undelivered", "queued", "unresolved"), "proposer": ("attempts",)}


def check_retired(world: World, below: int) -> None:
    """Once nothing of the old gateway incarnations is open, nothing is kept of them at all."""
    for process in world.processes.values():
        for role, slot in process.slots.items():
            machine: Any = slot.machine
            rows = machine.done if role == "acceptor" else {}
            if role == "scalatom":
                rows = {i: None for replica in machine.replicas.values() for i in replica.done}
            if any(incarnation < below for incarnation in rows):
                raise Violation("bounded", f"{process.name}/{role} keeps rows of retired incarnations")


def check_gone(world: World, groups: Iterable[str]) -> None:
    """Of a group that was removed nothing is left: no record, no log, no replica, nothing that names it."""
    for name in groups:
        for process in world.processes.values():
            if not process.up:
                continue
            for key in process.disk.records.get("scalatom", {}):
                if key[:1] in records.OF_GROUPS and records.group_of(key) == name:
                    raise Violation("bounded", f"{process.name} keeps records of {name}, which is gone")
            if name in process.disk.logs and process.disk.logs[name].entries:
                raise Violation("bounded", f"{process.name} keeps the log of {name}, which is gone")
            for role, slot in process.slots.items():
                machine: Any = slot.machine
                rows = machine.replicas if role == "scalatom" else ()
                if role == "gateway":
                    rows = (*machine.batching.open_by_cell, *machine.closed)
                if name in rows or (isinstance(machine, NamesGroups) and machine.mentions(name)):
                    raise Violation("bounded", f"{process.name}/{role} remembers {name}, which is gone")


def check_bounded(world: World, gateway: GatewaySettings, gateways: int) -> None:
    """Delivered envelopes are remembered only until a live gateway's window has moved on, and it has said so."""
    open_max, every = gateway.envelopes_open_max, gateway.finished_every
    for process in world.processes.values():
        for role, slot in process.slots.items():
            machine: Any = slot.machine
            buffers = machine.buffers()
            if role == "scalatom":
                limit = (open_max + every) * gateways * max(1, len(machine.replicas))
                for buffer in ("held", "delivered", "history"):
                    if buffers[buffer] > limit:
                        raise Violation("bounded", f"{process.name} keeps {buffers[buffer]} in {buffer}")
            elif (
                role == "acceptor"
                and buffers["instances"] > (open_max + every * len(machine.view.groups)) * gateways
            ):
                raise Violation("bounded", f"{process.name} keeps {buffers['instances']} open instances")
