"""What groups remember about producers is the same in all replicas, and in all groups of a set."""

from collections.abc import Mapping

from ordercast.protocols.celllog.group_log import GroupLog
from ordercast.protocols.celllog.idempotence import ProducerTable, SetKey
from ordercast.sim.checkers.violation import Violation
from ordercast.v1.sequencer_pb2 import ProducerRecord

#: Groups have places of their own, and count other sets as well.
OWN_TO_A_GROUP = ("spans", "turn")


def remembered(table: ProducerTable) -> dict[SetKey, ProducerRecord]:
    """What is kept about a set has no producer."""
    return {(record.producer, tuple(record.groups)): record for record in table.messages()}


def check_replicas(group: str, logs: Mapping[str, GroupLog]) -> None:
    """Those that have delivered the same, whether from the log, from their disks or from a snapshot."""
    found = {process: remembered(log.producers) for process, log in logs.items()}
    first = next(iter(found), "")
    for process, records in found.items():
        if logs[process].offset != logs[first].offset:
            raise Violation("offsets", f"{process} and {first} give another offset to what comes next in {group}")
        if records != found[first]:
            raise Violation("producers", f"{process} and {first} remember different producers of {group}")


def check_sets(tables: Mapping[str, ProducerTable]) -> None:
    """One table for each group. Who is next to be forgotten counts, too."""
    found = {group: _by_set(table) for group, table in tables.items()}
    for group, sets in found.items():
        for groups, records in sets.items():
            for other in groups:
                if other in found and records != found[other].get(groups):
                    raise Violation("producers", f"{group} and {other} remember different producers of {groups}")


def _by_set(table: ProducerTable) -> dict[tuple[str, ...], list[ProducerRecord]]:
    found: dict[tuple[str, ...], list[ProducerRecord]] = {}
    for record in sorted(table.messages(), key=lambda record: (record.turn, record.producer)):
        for field in OWN_TO_A_GROUP:
            record.ClearField(field)  # type: ignore[arg-type]
        found.setdefault(tuple(record.groups), []).append(record)
    return found
