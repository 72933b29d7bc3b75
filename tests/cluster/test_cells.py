"""Groups that share cells on a real cluster: made, described, moved with their cell, deleted, and made again."""

import ordercast
from ordercast.local.cluster import LocalCluster, wait_until
from ordercast.v1.gateway_pb2 import Cell
from ordercast.v1.membership_pb2 import Group
from tests.cluster.asking import in_time
from tests.cluster.changing import ask, patiently

GROUPS = ("orders", "bills", "stock")
GONE_S_MAX = 30.0
CHANGED_S_MAX = 60.0


def create(cluster: LocalCluster, name: str) -> Group:
    """As soon as all nodes are known to have software in which groups share cells."""
    made: Group = patiently(
        f"{name} is created", cluster, lambda c: c.create_group(name, shared=True, replicas=2, exist_ok=True)
    )
    return made


def cells(cluster: LocalCluster) -> list[Cell]:
    found: list[Cell] = ask(cluster, lambda c: c.cells())
    return [one for one in found if len(one.cell.replicas) >= 2]


def groups_of(cluster: LocalCluster) -> dict[str, Group]:
    return {group.name: group for group in ask(cluster, lambda c: c.groups())}


def test_groups_of_a_cell_are_made_described_moved_and_deleted(cluster: LocalCluster) -> None:
    made = {name: create(cluster, name) for name in GROUPS}
    (cell,) = cells(cluster)
    assert cell.groups == len(GROUPS)
    assert {group.cell for group in made.values()} == {cell.cell.id}
    for name, group in made.items():
        assert list(group.replicas) == list(cell.cell.replicas)
        assert ask(cluster, lambda c, name=name: c.describe_group(name)).group.cell == cell.cell.id
    described = ask(cluster, lambda c: c.describe_cell(cell.cell.name))
    assert list(described.groups) == sorted(GROUPS)
    assert [status.error for status in described.replicas] == ["", ""]
    assert ask(cluster, lambda c: c.create_group("beside", beside="orders")).cell == cell.cell.id

    # All of them move together.
    begun = patiently("a replica is added", cluster, lambda c: c.change_replicas("bills", "add"))
    assert begun.id == cell.cell.id
    wait_until("the cell has changed", lambda: is_settled(cluster, 3), CHANGED_S_MAX)
    found = groups_of(cluster)
    assert all(len(found[name].replicas) == 3 for name in GROUPS)

    # One goes, and comes again as another one.
    ask(cluster, lambda c: c.delete_group("stock"))
    wait_until("the group is gone", lambda: "stock" not in groups_of(cluster), GONE_S_MAX)
    assert [one.groups for one in cells(cluster)] == [len(GROUPS)]
    again = ask(cluster, lambda c: c.create_group("stock", beside="orders"))
    assert again.id != made["stock"].id
    assert (again.cell, again.state) == (cell.cell.id, made["stock"].state)

    async def listed() -> list[str]:
        async with ordercast.connect(*cluster.gateways) as oc:
            await oc.create_group("last", beside="stock", exist_ok=True)
            return list((await oc.describe_cell(again.cell)).groups)

    everything = sorted([*GROUPS, "beside", "last"])
    assert in_time(listed()) == everything
    # Nothing holds any of them: they go together, and the cell stays.
    for name in everything:
        ask(cluster, lambda c, name=name: c.delete_group(name))
    wait_until("all are gone", lambda: not set(everything) & set(groups_of(cluster)), GONE_S_MAX)
    assert [one.groups for one in cells(cluster)] == [0]


def is_settled(cluster: LocalCluster, replicas: int) -> bool:
    """The cell has so many replicas, and they have all started."""
    (found,) = cells(cluster)
    cell = found.cell
    is_changing = cell.HasField("next") or cell.HasField("previous") or bool(cell.starting)
    return len(cell.replicas) == replicas and not is_changing
