"""What readers of several groups see: no gap, no duplicate, one order for all of them, nothing behind a passed
place.

The truth is what LogChecker knows: the logs as replicas delivered them, whichever was first. It is not the merge's
word, nor a watermark's: each message that is shown must be the next of each of its groups, and when an envelope is
through, none of the reader's groups may have anything left at or below its key.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.core.cells import shares_cell
from ordercast.core.place import Place
from ordercast.sim.board import MessageKey, name_of
from ordercast.sim.checkers.logs import LogChecker
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.trace import describe


@dataclass(slots=True)
class Seen:
    """What one reader has seen since it began, or began again."""

    start: Place
    #: By group: the offset that comes next.
    next: dict[str, int]
    last: Place = field(default_factory=Place)
    #: The same as of its last acknowledgement.
    acknowledged: tuple[dict[str, int], Place] = field(default_factory=lambda: ({}, Place()))


class MergedChecker:
    def __init__(self, logs: LogChecker) -> None:
        self.logs = logs
        self.readers: dict[str, Seen] = {}
        #: Where each message was shown: the same for every reader.
        self.places: dict[MessageKey, Place] = {}
        #: Messages shown, over all readers.
        self.shown = 0

    def begins(self, reader: str, groups: Sequence[str], start: Place) -> None:
        """At a place. What comes before it is left out, and nothing else."""
        self.readers[reader] = Seen(start, dict.fromkeys(groups, 0))
        self.acknowledges(reader)

    def acknowledges(self, reader: str) -> None:
        """What it was shown last, and all before it."""
        seen = self.readers[reader]
        seen.acknowledged = (dict(seen.next), seen.last)

    def goes_on(self, reader: str, groups: Sequence[str]) -> None:
        """At its cursor, in those groups that are left: what it did not acknowledge comes again, and nothing
        else.
        """
        seen = self.readers[reader]
        following, seen.last = seen.acknowledged
        seen.next = {group: following.get(group, 0) for group in groups}

    def _next(self, seen: Seen, group: str) -> int:
        """What comes next in the group, without what comes before the start. That may still be delivered, too."""
        messages, offset = self._messages(group), seen.next[group]
        while offset < len(messages) and self._is_before(seen.start, group, messages[offset]):
            offset += 1
        seen.next[group] = offset
        return offset

    def _is_before(self, start: Place, group: str, key: MessageKey) -> bool:
        order_key = self._order_key(group, key)
        if order_key != start.order_key or not start.nth:
            return order_key < start.order_key
        return self.places[key] < start  # Whoever acknowledged a part of it has shown where its messages are.

    def _messages(self, group: str) -> list[MessageKey]:
        if shares_cell(group):
            return self.logs.shared[group].messages if group in self.logs.shared else []
        return self.logs.groups[group].messages

    def _order_key(self, group: str, key: MessageKey) -> bytes:
        return self.logs.groups[group.partition("/")[0]].order_keys[key]

    def leaves(self, reader: str, group: str) -> None:
        """The group is gone: what it had left is not shown."""
        self.readers[reader].next.pop(group, None)

    def shows(self, reader: str, place: Place, payload: bytes, offsets: dict[str, int]) -> None:
        seen, key = self.readers[reader], self.logs.board.by_payload.get(payload)
        self.shown += 1
        if key is None:
            raise self._wrong(reader, f"shows {payload!r}, which nobody sent")
        if place <= seen.last:
            raise self._wrong(reader, f"shows {name_of(key)} at {where(place)} behind {where(seen.last)}")
        seen.last = place
        if self.places.setdefault(key, place) != place:
            raise self._wrong(
                reader, f"shows {name_of(key)} at {where(place)}, others at {where(self.places[key])}"
            )
        expected = {group: None for group in seen.next if key in self.logs.offsets_in(group)}
        if sorted(offsets) != sorted(expected):
            raise self._wrong(reader, f"shows {name_of(key)} with {offsets}, which is in {sorted(expected)}")
        for group, offset in offsets.items():
            messages = self._messages(group)
            if (
                offset >= len(messages)
                or messages[offset] != key
                or self._order_key(group, key) != place.order_key
            ):
                raise self._wrong(reader, f"shows {name_of(key)} as {group}:{offset}, where it is not")
            if offset != (following := self._next(seen, group)):
                raise self._wrong(reader, f"shows {group}:{offset}, but {following} comes next there")
            seen.next[group] = offset + 1

    def has_shown(self, reader: str, order_key: bytes) -> None:
        """All of the envelope with this key, and so all that comes before."""
        seen = self.readers[reader]
        for group in seen.next:
            messages, offset = self._messages(group), self._next(seen, group)
            if offset < len(messages) and self._order_key(group, messages[offset]) <= order_key:
                left_out = name_of(messages[offset])
                raise self._wrong(
                    reader, f"left {left_out} out, {group}:{offset}, and is at {describe(order_key)}"
                )

    def has_passed(self, reader: str, cell: str, order_key: bytes) -> None:
        """Nobody may deliver anything there any more: the reader has gone by."""
        log = self.logs.groups[cell]
        log.watermark = max(log.watermark, order_key)

    def check_end(self, reader: str) -> None:
        seen = self.readers[reader]
        for group in seen.next:
            offset, there = self._next(seen, group), len(self._messages(group))
            if offset != there:
                raise self._wrong(reader, f"has come to {group}:{offset}, which ends at {there}")

    def _wrong(self, reader: str, text: str) -> Violation:
        return Violation("merged", f"{reader} {text}")


def where(place: Place) -> str:
    return f"{describe(place.order_key) if place.order_key else 'the beginning'}/{place.nth}"
