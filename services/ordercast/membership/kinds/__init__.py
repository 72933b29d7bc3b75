"""The kinds of groups by how their members change, and which one a group is."""

from ordercast.core.members import how_members_change
from ordercast.core.protocol import Members
from ordercast.membership.kinds.configurations import ConfigurationChanges
from ordercast.membership.kinds.kind import ChangeKind
from ordercast.membership.kinds.views import ViewChanges
from ordercast.v1.membership_pb2 import Group

KINDS: dict[Members, ChangeKind] = {Members.CONFIGURATIONS: ConfigurationChanges(), Members.VIEWS: ViewChanges()}


def kind_of(group: Group) -> ChangeKind:
    return KINDS[how_members_change(group)]
