"""What a request carries: messages behind each other as bytes, and for which groups they are.

A client with many messages to different groups sends them as one batch, as long as all of them go to the same
cells: then they are numbered by one sequence, and nothing is done here for each of them. Such a request stands for
as many simple ones, and where its rows have to be told apart it becomes these.
"""

from collections.abc import Collection, Sequence
from itertools import chain
from typing import NamedTuple

from google.protobuf.message import DecodeError

from ordercast.core.cells import cells_of, is_target, places_of
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.submission import Groups
from ordercast.v1.common_pb2 import Batch, Message
from ordercast.v1.gateway_pb2 import PublishRequest


class Rows(NamedTuple):
    """The messages of one request."""

    #: Serialised, as they are in an envelope's body.
    batch: bytes
    messages: int
    #: For which groups: the sets, each once, and in pairs the number of one, and so many messages for it.
    targets: Sequence[Groups]
    runs: Sequence[int]


def are_all_for(names: Collection[str], cells: Groups, targets: Sequence[Groups]) -> bool:
    """Whether each message that is for one of these targets is for one of the named groups or cells."""
    if any(cell in names for cell in cells):
        return True
    return all(any(group in names for group in target) for target in targets)


def count_of(request: PublishRequest) -> int:
    """How many messages it carries, by its own word."""
    return request.count if request.batch else len(request.messages)


def messages_of(request: PublishRequest) -> Sequence[Message]:
    """Each by itself. Refuses what is no batch of as many messages as it says."""
    if not request.batch:
        return request.messages
    try:
        messages = Batch.FromString(request.batch).messages
    except DecodeError:
        raise RemoteProtocolError("a batch that is none") from None
    if len(messages) != request.count:
        raise RemoteProtocolError(f"a batch of {request.count} messages has {len(messages)}")
    return messages


def rows_of(request: PublishRequest, groups: Groups, messages: Sequence[Message]) -> Rows:
    """Refuses what does not say plainly for which groups each message is. `groups`: its own, sorted."""
    batch = request.batch or Batch(messages=messages).SerializeToString()
    count = len(messages)
    if not request.targets and not request.runs:
        return Rows(batch, count, (groups,), (0, count) if count else ())
    if not request.batch:
        raise RemoteProtocolError("only a batch has targets")
    return Rows(batch, count, _targets(request, cells_of(groups)), _runs(request))


def _targets(request: PublishRequest, cells: Groups) -> Sequence[Groups]:
    named = list(request.groups)
    places = _places(request)
    if len(set(chain.from_iterable(places))) < len(named):
        raise RemoteProtocolError("a group that no target has")
    targets = [tuple(sorted([named[place] for place in target])) for target in places]
    if not all(is_target(target, cells) for target in targets):
        raise RemoteProtocolError("a target is a set of groups that live in the same cells as those of the others")
    if len(set(targets)) < len(targets):
        raise RemoteProtocolError("a target is named twice")
    return targets


def _runs(request: PublishRequest) -> Sequence[int]:
    runs = list(request.runs)
    counts = runs[1::2]
    if len(runs) % 2 or sum(counts) != request.count or not all(counts):
        raise RemoteProtocolError("the runs of a batch have as many messages as the batch")
    if max(runs[::2]) >= len(_places(request)):
        raise RemoteProtocolError("a run for a target that is not there")
    return runs


def _places(request: PublishRequest) -> Sequence[tuple[int, ...]]:
    return places_of(request.targets, len(request.groups))


def split(request: PublishRequest) -> list[PublishRequest]:
    """The simple requests that it stands for, one for each run; nothing if it is one, or says nothing plainly."""
    try:
        messages = messages_of(request)
        targets, runs = _places(request), _runs(request) if request.targets else ()
    except RemoteProtocolError:
        return []
    parts = []
    at = 0
    for target, count in zip(runs[::2], runs[1::2], strict=True):
        part = PublishRequest(
            producer=request.producer,
            epoch=request.epoch,
            groups=sorted(request.groups[place] for place in targets[target]),
            first_sequence=request.first_sequence + at,
            messages=messages[at : at + count],
            unordered=request.unordered,
            session=request.session,
            trace=request.trace,
            cells=request.cells,
        )
        parts.append(part)
        at += count
    return parts
