"""What an envelope's header says of the messages in it: ranges of producers' sequences, and for whom they are."""

from collections.abc import Mapping, Sequence

from ordercast.core.submission import Groups
from ordercast.gateway.producer import WaitingRequest, label_of
from ordercast.v1.common_pb2 import ProducerRange


def targets_of(items: Sequence[WaitingRequest], cells: Groups) -> list[Groups]:
    """Each set of groups once, in the order they come; none if all of it is simply for the cells."""
    targets = list(dict.fromkeys(target for item in items for target in item.rows.targets))
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
            range_.count += item.rows.messages
            requests[-1].append(item)
        else:
            range_ = ProducerRange(
                producer=item.producer,
                epoch=item.epoch,
                first_sequence=item.first_sequence,
                count=item.rows.messages,
                open_token=item.open_token,
                client=label_of(item.client) if names_clients else b"",
            )
            ranges.append(range_)
            requests.append([item])
        if targets:
            _add_runs(range_, item, indices)
    return ranges, requests


def _follows(item: WaitingRequest, range_: ProducerRange, last: WaitingRequest) -> bool:
    return (
        not item.open_token
        and not range_.open_token
        and (range_.producer, range_.epoch) == (item.producer, item.epoch)
        and range_.first_sequence + range_.count == item.first_sequence
        and last.client == item.client
    )


def _add_runs(range_: ProducerRange, item: WaitingRequest, indices: Mapping[Groups, int]) -> None:
    """Those of one request, with the numbers that its targets have in the envelope."""
    rows = item.rows
    numbers = [indices[target] for target in rows.targets]
    runs = range_.runs
    for target, count in zip(rows.runs[::2], rows.runs[1::2], strict=True):
        if runs and runs[-2] == numbers[target]:
            runs[-1] += count
        else:
            runs.extend((numbers[target], count))
