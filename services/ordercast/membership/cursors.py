"""Cursors: where named consumers go on, in one group or over several.

In one group a cursor is an offset. Over several groups of a domain it is one place in the domain's order, however
many groups are read with it.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ordercast.membership import settings as limits
from ordercast.membership.names import check_name, quoted
from ordercast.membership.refusals import Code, Refused
from ordercast.v1.common_pb2 import Place
from ordercast.v1.membership_pb2 import (
    GROUP_STATE_DELETING,
    CommandResult,
    Cursor,
    DeleteCursor,
    MoveCursors,
    ReadCursors,
)

if TYPE_CHECKING:
    from ordercast.membership.state import State

ORDER_KEY_BYTES_MAX = 64

#: A domain and a name.
Key = tuple[str, str]


class MergedCursors:
    def __init__(self) -> None:
        self._places: dict[Key, tuple[bytes, int]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: Key) -> bool:
        return key in self._places

    def move(self, cursor: Cursor) -> None:
        self._places[cursor.domain, cursor.name] = (cursor.place.order_key, cursor.place.index)

    def delete(self, domain: str, name: str) -> None:
        if self._places.pop((domain, name), None) is None:
            raise self._missing(domain, name)

    def read(self, domain: str, name: str) -> list[Cursor]:
        """All of the domain, if no name is given."""
        if name and (domain, name) not in self._places:
            raise self._missing(domain, name)
        return self.of(key for key in sorted(self._places) if key[0] == domain and name in ("", key[1]))

    def all(self) -> list[Cursor]:
        return self.of(sorted(self._places))

    def of(self, keys: Iterable[Key]) -> list[Cursor]:
        found = []
        for domain, name in keys:
            order_key, index = self._places[domain, name]
            found.append(Cursor(domain=domain, name=name, place=Place(order_key=order_key, index=index)))
        return found

    @staticmethod
    def check(cursor: Cursor) -> None:
        if cursor.group or len(cursor.place.order_key) > ORDER_KEY_BYTES_MAX:
            message = "a cursor over several groups has a domain and a place in its order, and no group"
            raise Refused(Code.INVALID_ARGUMENT, message)

    @staticmethod
    def _missing(domain: str, name: str) -> Refused:
        return Refused(Code.NOT_FOUND, f"the domain {domain} has no cursor {quoted(name)} over several groups")


def all_cursors(state: "State") -> list[Cursor]:
    return [*_cursors_of(state, sorted(state.cursors)), *state.merged_cursors.all()]


def cursors_told(state: "State", count_max: int) -> list[Cursor]:
    """Cursors in one group, for whoever looks how far behind they are; beyond so many, the first by name."""
    return _cursors_of(state, sorted(state.cursors)[:count_max])


def put_cursor(state: "State", cursor: Cursor) -> None:
    if cursor.domain:
        state.merged_cursors.move(cursor)
    else:
        state.cursors[cursor.group, cursor.name] = cursor.offset


def _cursors_of(state: "State", keys: Iterable[Key]) -> list[Cursor]:
    return [Cursor(group=key[0], name=key[1], offset=state.cursors[key]) for key in keys]


def move_cursors(state: "State", move: MoveCursors, result: CommandResult) -> None:
    """All of them or none: they may be one cut."""
    if not 0 < len(move.cursors) <= limits.CURSORS_PER_COMMAND_MAX:
        message = f"1 to {limits.CURSORS_PER_COMMAND_MAX} cursors move at a time, not {len(move.cursors)}"
        raise Refused(Code.INVALID_ARGUMENT, message)
    new: dict[tuple[str, str, str], None] = {}
    for cursor in move.cursors:
        check_name("cursor", cursor.name)
        _check(state, cursor)
        known = state.merged_cursors if cursor.domain else state.cursors
        if (cursor.domain or cursor.group, cursor.name) not in known:
            new[cursor.domain, cursor.group, cursor.name] = None
    if len(state.cursors) + len(state.merged_cursors) + len(new) > limits.CURSORS_MAX:
        raise Refused(Code.RESOURCE_EXHAUSTED, f"there are {limits.CURSORS_MAX} cursors: delete some")
    for cursor in move.cursors:
        put_cursor(state, cursor)


def _check(state: "State", cursor: Cursor) -> None:
    if cursor.domain:
        _check_domain(state, cursor.domain)
        state.merged_cursors.check(cursor)
    elif state.group_called(cursor.group).state == GROUP_STATE_DELETING:
        raise Refused(Code.FAILED_PRECONDITION, f"the group {cursor.group} is being deleted")


def _check_domain(state: "State", name: str) -> None:
    if name not in state.domains:
        raise Refused(Code.NOT_FOUND, f"there is no domain {quoted(name)}")


def delete_cursor(state: "State", delete: DeleteCursor, result: CommandResult) -> None:
    if delete.domain:
        state.merged_cursors.delete(delete.domain, delete.name)
    elif state.cursors.pop((delete.group, delete.name), None) is None:
        message = f"the group {quoted(delete.group)} has no cursor {quoted(delete.name)}"
        raise Refused(Code.NOT_FOUND, message)


def read_cursors(state: "State", read: ReadCursors, result: CommandResult) -> None:
    if read.domain:
        _check_domain(state, read.domain)
        result.cursors.extend(state.merged_cursors.read(read.domain, read.name))
        return
    state.group_called(read.group)
    if not read.name:
        keys = sorted(key for key in state.cursors if key[0] == read.group)
    elif (read.group, read.name) in state.cursors:
        keys = [(read.group, read.name)]
    else:
        raise Refused(Code.NOT_FOUND, f"the group {read.group} has no cursor {quoted(read.name)}")
    result.cursors.extend(_cursors_of(state, keys))
