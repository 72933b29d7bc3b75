"""R4, looked at from outside: what is announced or ended is on the disks of a majority of the started
configuration.
"""

from collections.abc import Iterable

from ordercast.core.ids import unpack_u64
from ordercast.core.quorums import majority
from ordercast.protocols.apbcast.events import ROOT
from ordercast.protocols.apbcast.registry import Known
from ordercast.protocols.apbcast.root_base import ENTRY, MERGE
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.process import Process
from ordercast.v1.apbcast_pb2 import MergeState


def lengths_on(process: Process, known: Known) -> dict[int, int]:
    """By stream, how much of it the disk has, or the merge that is on the disk is past."""
    lengths: dict[int, int] = {}
    state = MergeState()
    for key, value in process.disk.records.get(ROOT, {}).items():
        if key[:1] == ENTRY:
            stream, index = unpack_u64(key[1:9]), unpack_u64(key[9:])
            lengths[stream] = max(lengths.get(stream, 0), index + 1)
        elif key[:1] == MERGE:
            state = MergeState.FromString(value)
    for position in state.positions:
        lengths[position.stream] = max(lengths.get(position.stream, 0), position.index)
    for view in known.state.views:
        for end in view.ends:
            if state.view >= view.number:
                lengths[end.stream] = max(lengths.get(end.stream, 0), end.length)
    return lengths


def check(processes: dict[str, Process], known: Known, announced: Iterable[tuple[int, int]]) -> None:
    """`announced`: of streams that speak, how much they say is safe. Ends are in what membership's log says."""
    lengths = {n: lengths_on(p, known) for n, p in processes.items() if ROOT in p.factories}
    owed = [
        (stream, length, known.streams[stream].home) for stream, length in announced if stream in known.streams
    ]
    owed += [(end.stream, end.length, end.keeper) for end in known.ends.values()]
    for stream, length, name in owed:
        group = known.groups.get(name)
        if group is None:
            continue
        members = group.started.members
        have = [member for member in members if lengths[member].get(stream, 0) >= length]
        if len(have) < majority(len(members)):
            raise Violation(
                "durability",
                f"{length} of stream {stream} are safe in {name}, and only {have} of {members} have them",
            )
