"""Messages of one producer as one batch, for whatever groups of the same cells they are; and where they went."""

from collections.abc import Iterable, Sequence

from ordercast.client.lane import H, Item
from ordercast.client.types import Groups, Placed
from ordercast.core.cells import told_as
from ordercast.v1.common_pb2 import Batch
from ordercast.v1.gateway_pb2 import PublishReply, PublishRequest


def put_messages(request: PublishRequest, items: Sequence[Item[H]], *, as_batch: bool) -> None:
    """And for which groups they are. They have one lane; without a batch, also the same groups."""
    groups = items[0].groups
    messages = [item.message for item in items]
    if as_batch:
        request.batch, request.count = Batch(messages=messages).SerializeToString(), len(items)
    else:
        request.messages.extend(messages)
    if all(item.groups is groups or item.groups == groups for item in items):
        request.groups.extend(groups)
    else:
        _put_runs(request, [item.groups for item in items])
    request.cells.extend(told_as(items[0].lane.cells, tuple(request.groups)))


def _put_runs(request: PublishRequest, sets: Iterable[Groups]) -> None:
    """Which are not all the same."""
    targets: dict[Groups, int] = {}
    runs: list[int] = []
    for groups in sets:
        target = targets.setdefault(groups, len(targets))
        if runs and runs[-2] == target:
            runs[-1] += 1
        else:
            runs += (target, 1)
    named = sorted({group for groups in targets for group in groups})
    places = {group: place for place, group in enumerate(named)}
    told: list[int] = []
    for groups in targets:
        told.append(len(groups))
        told += [places[group] for group in groups]
    request.groups.extend(named)
    request.targets.extend(told)
    request.runs.extend(runs)


def placed_by(reply: PublishReply, prefix: str, sets: Sequence[Groups]) -> Placed:
    """What a receipt says of messages for these groups, one after the other."""
    if reply.bases:
        bases = tuple(zip(reply.groups, reply.bases, strict=False))
        return Placed(prefix, reply.order_key, reply.first_sequence, bases, reply.duplicate, sets)
    offsets = tuple([(o.group, o.first_offset) for o in reply.offsets]) if reply.order_key else ()
    return Placed(prefix, reply.order_key, reply.first_sequence, offsets, reply.duplicate)
