"""The kinds of groups by how their members change, and which one a group is."""

from ordercast.core.members import how_members_change
from ordercast.core.protocol import Members
from ordercast.membership.kinds.configurations import Configurations
from ordercast.membership.kinds.kind import Kind
from ordercast.membership.kinds.views import Views
from ordercast.v1.membership_pb2 import Group

KINDS: dict[Members, Kind] = {Members.CONFIGURATIONS: Configurations(), Members.VIEWS: Views()}


def kind_of(group: Group) -> Kind:
    return KINDS[how_members_change(group)]
