"""What must hold once faults have stopped and everything has come to rest.

[SCALATOM TO1, TO2] Everything sent is delivered at every replica of its groups; receipts tell the truth; and
nothing is left in any buffer but what is bounded by a setting.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ordercast.core.machine import NamesGroups
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.scalatom import records
from ordercast.sim.board import Board, name_of
from ordercast.sim.checkers.logs import GroupLog, LogChecker
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import Client
from ordercast.sim.world import World


def check_receipts(logs: LogChecker, board: Board) -> None:
    for receipt in board.receipts:
        for group in receipt.key[1]:
            log = logs.groups[group]
            offset = log.offsets.get(receipt.key)
            if offset is None:
                raise Violation("receipt", f"{name_of(receipt.key)} has a receipt but is not in {group}")
            if receipt.order_key and receipt.order_key != log.order_keys[receipt.key]:
                raise Violation("receipt", f"{name_of(receipt.key)} has a receipt with another key than {group}")
            if receipt.order_key and receipt.offsets.get(group) != offset:
                raise Violation(
                    "receipt",
                    f"{name_of(receipt.key)} is at {group}:{offset}, not {receipt.offsets.get(group)} as promised",
                )


def check_refused(logs: LogChecker, board: Board) -> None:
    """What its sender was told is not stored, and never will be, is nowhere."""
    for name, log in logs.groups.items():
        for key in board.refused:
            if key in log.offsets:
                raise Violation("receipt", f"{name_of(key)} was refused for good, and is in {name}")


def check_bodies(world: World, logs: LogChecker, floors: dict[str, int]) -> None:
    """What retention has not dropped is on every live replica's disk, body and all."""
    for name, log in logs.groups.items():
        for replica in log.replicas:
            process = world.processes[replica]
            if not process.up or name not in process.disk.logs or name not in process.groups:
                continue
            kept = process.disk.logs[name]
            if kept.begins > floors.get(name, 0):
                raise Violation(
                    "durability", f"{replica} lost {name} up to {kept.begins}, kept from {floors.get(name, 0)}"
                )
            for position in range(kept.begins, kept.ends):
                if kept.entries[position - kept.begins].envelope != log.entries[position].envelope:
                    raise Violation("durability", f"{replica} has another envelope at {name}:{position}")


def check_all_or_nothing(logs: LogChecker) -> None:
    """Delivered in one destination group means delivered in each."""
    for name, log in logs.groups.items():
        for key in log.messages:
            for other in key[1]:
                if key not in logs.groups[other].offsets:
                    raise Violation("agreement", f"{name_of(key)} was delivered in {name} but not in {other}")


def unfinished(world: World, groups: Mapping[str, GroupLog], clients: list[Client]) -> str:
    """Why the run is not over, or an empty string."""
    for client in clients:
        if not client.is_done:
            return f"{client.name} still waits for {client.waits_for()}"
    for name, log in groups.items():
        for replica in log.replicas:
            process = world.processes[replica]
            if process.up:
                end = process.disk.logs[name].ends if name in process.disk.logs else 0
                if end != len(log.entries):
                    return f"{replica} has {end} of {len(log.entries)} envelopes of {name} on disk"
    for process in world.processes.values():
        for role, slot in process.slots.items():
            for buffer in EMPTY.get(role, ()):
                count = slot.machine.buffers()[buffer]
                if count:
                    return f"{process.name}/{role} has {count} {buffer}"
    return ""


#: What is empty after everything has come to rest, by role.
EMPTY = {
    "scalatom": ("undelivered", "queued", "unresolved"),
    "proposer": ("attempts",),
    "gateway": ("waiting", "unanswered", "open"),
}


def check_retired(world: World, below: int) -> None:
    """Once nothing of the old gateway incarnations is open, nothing is kept of them at all."""
    live = [p.incarnation for p in world.processes.values() if p.up and "gateway" in p.factories]
    if below < min(live):
        raise Violation("bounded", f"gateway incarnation {below} is over, but something of it is still open")
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
                    rows = (*machine.batching.open_by_group, *machine.closed)
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
