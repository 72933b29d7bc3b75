"""What must hold once faults have stopped and everything has come to rest.

Everything sent is delivered at every replica of its groups; receipts tell the truth; and nothing is left in any
buffer. What a protocol keeps beyond that, and how much of it, is checked with the protocol.
"""

from collections.abc import Mapping, Sequence

from ordercast.core.cells import cell_of, cells_of
from ordercast.core.dropping import dropped_in
from ordercast.core.protocol import Orders
from ordercast.sim.board import Board, name_of
from ordercast.sim.checkers.logs import GroupLog, LogChecker, as_kept
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import Client
from ordercast.sim.world import World


def check_receipts(logs: LogChecker, board: Board, orders: Orders = Orders.ACROSS) -> None:
    """Of what is older than groups remember a receipt has no place."""
    for receipt in board.receipts:
        groups = receipt.key[1]
        for group in groups:
            log = logs.groups[cell_of(group)]
            offset = logs.offsets_in(group).get(receipt.key)
            if offset is None:
                raise Violation("receipt", f"{name_of(receipt.key)} has a receipt but is not in {group}")
            # Where each group is ordered by itself, the key is the first one's.
            is_first = cell_of(group) == cells_of(groups)[0]
            has_key = bool(receipt.order_key) and (orders is Orders.ACROSS or is_first)
            if has_key and receipt.order_key != log.order_keys[receipt.key]:
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
    """What retention has not dropped is on every live replica's disk, body and all.

    `floors`: how far it went anywhere, by cell, and by the address of a group that shares one.
    """
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
            for position, entry in enumerate(kept.entries, kept.begins):
                if entry.envelope != as_kept(name, log.entries[position], entry).envelope:
                    raise Violation("durability", f"{replica} has another envelope at {name}:{position}")
                for group in dropped_in(name, entry):
                    if position >= floors.get(group, 0):
                        raise Violation("durability", f"{replica} lost {name}:{position} for {group}")


def check_all_or_nothing(logs: LogChecker) -> None:
    """Delivered in one destination group means delivered in each."""
    for name, log in logs.groups.items():
        for key in log.messages:
            for other in key[1]:
                if key not in logs.offsets_in(other):
                    raise Violation("agreement", f"{name_of(key)} was delivered in {name} but not in {other}")


#: What is empty in gateways after everything has come to rest.
OF_GATEWAYS = ("waiting", "unanswered", "open")


def unfinished(
    world: World, groups: Mapping[str, GroupLog], clients: list[Client], empty: Mapping[str, Sequence[str]]
) -> str:
    """Why the run is not over, or an empty string.

    `empty`: by role, buffers of other machines that are empty when it is.
    """
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
            for buffer in OF_GATEWAYS if role == "gateway" else empty.get(role, ()):
                count = slot.machine.buffers()[buffer]
                if count:
                    return f"{process.name}/{role} has {count} {buffer}"
    return ""


def check_all_retired(world: World, below: int) -> None:
    """Nothing of the gateway incarnations that are over is open any more."""
    live = [p.incarnation for p in world.processes.values() if p.up and "gateway" in p.factories]
    if below < min(live):
        raise Violation("bounded", f"gateway incarnation {below} is over, but something of it is still open")
