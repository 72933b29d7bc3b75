"""The groups and cells of a cluster, with what would take a walk over all of them to find out.

There may be very many groups that share their cells, and what is done for one of them must not depend on how many
others there are. What is placed are few: groups that have a cell to themselves, and the cells that others share.
"""

from collections.abc import Iterable

from ordercast.core.group_table import GroupTable
from ordercast.core.ids import group_name
from ordercast.v1.membership_pb2 import GROUP_STATE_DELETING, Group


class Population:
    def __init__(self) -> None:
        #: What users name, by name.
        self.groups = GroupTable()
        #: Cells that groups share, by name. No group has the name of one.
        self.cells: dict[str, Group] = {}
        #: Groups that have a cell to themselves, by name.
        self._apart: dict[str, Group] = {}
        #: Groups that are being deleted, by name.
        self.deleting: dict[str, Group] = {}
        #: By the id of a shared cell: how many groups live there.
        self.living: dict[str, int] = {}
        #: The revision at which each group changed last, by name; in that order.
        self._latest: dict[str, int] = {}

    @classmethod
    def of(cls, groups: Iterable[Group], cells: Iterable[Group]) -> "Population":
        found = cls()
        for cell in cells:
            found.add_cell(cell)
        for group in groups:
            found.add(group)
        for group in sorted(found.groups.values(), key=lambda group: group.revision):
            found.note_change(group)
        return found

    # ------------------------------------------------------------------------------------- coming and going

    def add(self, group: Group) -> None:
        self.groups[group.name] = group
        if group.cell:
            self.living[group.cell] += 1
        else:
            self._apart[group.name] = group

    def add_cell(self, cell: Group) -> None:
        self.cells[cell.name] = cell
        self.living[cell.id] = 0

    def note_change(self, group: Group) -> None:
        """It has a later revision than all that changed before. What changed is kept from now on."""
        name = group.name
        known = self.groups.get(name)
        if known is None or known.id != group.id:
            return
        self.groups[name] = group
        self._latest.pop(name, None)
        self._latest[name] = group.revision
        if group.state == GROUP_STATE_DELETING:
            self.deleting[group.name] = group

    def remove(self, group: Group) -> None:
        """A cell stays when its last group goes: the next group would place it anew. And it costs next to nothing,
        while to be sure that nobody needs it any more would take the word of every process.
        """
        del self.groups[group.name], self._latest[group.name]
        self._apart.pop(group.name, None)
        self.deleting.pop(group.name, None)
        if group.cell:
            self.living[group.cell] -= 1

    # --------------------------------------------------------------------------------------------- asking

    def groups_since(self, revision: int) -> list[Group]:
        """Those that changed later."""
        found = []
        for name, changed in reversed(self._latest.items()):
            if changed <= revision:
                break
            found.append(self.groups[name])
        return found

    def placed(self) -> list[Group]:
        """What has replicas of its own, by name."""
        placed = self._apart | self.cells
        return [placed[name] for name in sorted(placed)]

    def placed_count(self) -> int:
        return len(self._apart) + len(self.cells)

    def with_id(self, id_: str) -> Group | None:
        """A group."""
        group = self.groups.get(group_name(id_))
        return group if group is not None and group.id == id_ else None

    def cell_with(self, id_: str) -> Group | None:
        """A cell that groups share."""
        cell = self.cells.get(group_name(id_))
        return cell if cell is not None and cell.id == id_ else None

    def placed_as(self, name_or_id: str) -> Group | None:
        """What is placed and called so: a cell, a group that has one to itself, or the cell of one that has not.

        People have names, and duties ids: a name may be another group's by now. No name looks like an id.
        """
        if group_name(name_or_id) != name_or_id:
            group = self.with_id(name_or_id) or self.cell_with(name_or_id)
        else:
            group = self.groups.get(name_or_id) or self.cells.get(name_or_id)
        return self.cell_with(group.cell) if group is not None and group.cell else group
