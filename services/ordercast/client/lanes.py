"""The lanes of a producer, by the cells that messages are numbered by."""

from ordercast.client.errors import ResourceExhausted
from ordercast.client.lane import H, Lane
from ordercast.client.types import Groups

#: Sets of cells whose numbers are remembered.
LANES_MAX = 16_384


class Lanes(dict[Groups, Lane[H]]):
    def __init__(self, *, is_named: bool) -> None:
        super().__init__()
        self._is_named = is_named
        #: A set that we do not know may be one that we used and forgot.
        self._has_forgotten = False

    def add(self, cells: Groups, groups: Groups, prefix: str) -> Lane[H]:
        """Another one, opened in the name of these groups if it has to be opened. There may be too many."""
        self._make_room()
        is_new = not (self._is_named or self._has_forgotten)
        lane = self[cells] = Lane(cells, groups, prefix, is_open=is_new, is_known=is_new)
        return lane

    def _make_room(self) -> None:
        """An idle one's numbers can be learned again by opening it. But a named producer would then fence its
        successor.
        """
        if len(self) < LANES_MAX:
            return
        idle = next((lane for lane in self.values() if lane.pending == 0), None)
        if self._is_named or idle is None:
            raise ResourceExhausted(f"a producer may use {LANES_MAX} different sets of cells")
        del self[idle.cells]
        self._has_forgotten = True
