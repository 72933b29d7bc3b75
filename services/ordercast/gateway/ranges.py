"""What an envelope's header says of the messages in it: ranges of producers' sequences, and for whom they are."""

from collections.abc import Sequence

from ordercast.core.submission import Groups
from ordercast.gateway.producer import WaitingRequest, label_of
from ordercast.v1.common_pb2 import ProducerRange


def targets_of(items: Sequence[WaitingRequest], cells: Groups) -> list[Groups]:
    """Each set of groups once, in the order they come; none if all of it is simply for the cells."""
    targets = list(dict.fromkeys(item.groups for item in items))
    return targets if targets != [cells] else []


def ranges_of(
    items: Sequence[WaitingRequest], targets: Sequence[Groups], *, names_clients: bool
) -> tuple[list[ProducerRange], list[list[WaitingRequest]]]:
    """The ranges, and the requests of each. Requests that follow on each other become one range."""
    indices = {groups: index for index, groups in enumerate(targets)}
    ranges: list[ProducerRange] = []
    requests: list[list[WaitingRequest]] = []
    for item in items:
        range_ = ranges[-1] if ranges else None
        if range_ is not None and _follows(item, range_, requests[-1][-1]):
            range_.count += len(item.messages)
            requests[-1].append(item)
        else:
            range_ = ProducerRange(
                producer=item.producer,
                epoch=item.epoch,
                first_sequence=item.first_sequence,
                count=len(item.messages),
                open_token=item.open_token,
                client=label_of(item.client) if names_clients else b"",
            )
            ranges.append(range_)
            requests.append([item])
        if targets and item.messages:
            _add_run(range_, indices[item.groups], len(item.messages))
    return ranges, requests


def _follows(item: WaitingRequest, range_: ProducerRange, last: WaitingRequest) -> bool:
    return (
        not item.open_token
        and not range_.open_token
        and (range_.producer, range_.epoch) == (item.producer, item.epoch)
        and range_.first_sequence + range_.count == item.first_sequence
        and last.client == item.client
    )


def _add_run(range_: ProducerRange, target: int, count: int) -> None:
    runs = range_.runs
    if runs and runs[-2] == target:
        runs[-1] += count
    else:
        runs.extend((target, count))
