"""Who is where in a group, as membership describes it.

How members change is of two kinds (`Traits.members`), and what differs between them is asked of the kind
(`kind_of`): nobody else asks which one it is.
"""

from typing import TYPE_CHECKING

from ordercast.core.cells import SLASH
from ordercast.core.members.configurations import Configurations
from ordercast.core.members.kind import Kind
from ordercast.core.members.views import Views
from ordercast.core.protocol import Members

if TYPE_CHECKING:  # the command line asks, and does not want to wait for it
    from ordercast.v1.membership_pb2 import Group

KINDS: dict[Members, Kind] = {Members.CONFIGURATIONS: Configurations(), Members.VIEWS: Views()}


def how_members_change(group: "Group") -> Members:
    """How its members change: only a group with views has a placement beside its members."""
    return Members.VIEWS if group.placement else Members.CONFIGURATIONS


def kind_of(group: "Group") -> Kind:
    return KINDS[how_members_change(group)]


def places_of(group: "Group") -> list[str]:
    """Where its replicas should be: in a group with views, not all of them may be there now."""
    return list(group.placement or group.replicas)


def learners_of(group: "Group") -> list[str]:
    return kind_of(group).learners(group)


def is_changing(group: "Group", name: str) -> bool:
    """Whether it has to start in the present configuration, or to copy the log for the next one."""
    if name in group.starting:
        return True
    # Most groups change seldom, and there may be many: this is asked of each of them often.
    kind = kind_of(group)
    return kind.has_newcomers(group) and name in kind.learners(group)


def holders_of(group: "Group") -> list[str]:
    """Whoever has the log, or is to have it."""
    there = (*group.replicas, *group.previous.replicas, *group.leaving, *group.placement)
    return sorted({*there, *learners_of(group)})


def address_of(group: "Group") -> str:
    """What machines call it (core/cells.py): a group that has a cell to itself has that cell's name."""
    return f"{group.cell}{SLASH}{group.id}" if group.cell else group.id
