"""What an envelope's header says of the messages in it: ranges of producers' sequences."""

from collections.abc import Sequence

from ordercast.gateway.producer import Waiting, label_of
from ordercast.v1.common_pb2 import ProducerRange


def ranges_of(items: Sequence[Waiting], *, names_clients: bool) -> tuple[list[ProducerRange], list[list[Waiting]]]:
    """The ranges, and the requests of each. Requests that follow on each other become one range."""
    ranges: list[ProducerRange] = []
    requests: list[list[Waiting]] = []
    for item in items:
        last = ranges[-1] if ranges else None
        if (
            last is not None
            and not item.open_token
            and not last.open_token
            and (last.producer, last.epoch) == (item.producer, item.epoch)
            and last.first_sequence + last.count == item.first_sequence
            and requests[-1][-1].client == item.client
        ):
            last.count += len(item.messages)
            requests[-1].append(item)
            continue
        ranges.append(
            ProducerRange(
                producer=item.producer,
                epoch=item.epoch,
                first_sequence=item.first_sequence,
                count=len(item.messages),
                open_token=item.open_token,
                client=label_of(item.client) if names_clients else b"",
            )
        )
        requests.append([item])
    return ranges, requests
