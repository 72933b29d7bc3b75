"""Changes of replicas on a real cluster, for tests: asked for, waited for, and what they leave on disks."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lmdb

import ordercast
from ordercast.client.admin import Change
from ordercast.errors import DeadlineExceeded, FailedPrecondition, OrdercastError, Unavailable
from ordercast.local.cluster import ClusterError, LocalCluster, wait_until
from ordercast.local.configurations import is_changing, is_settled, text_of
from ordercast.runtime.process.exits import EXIT_REFUSED
from ordercast.runtime.storage.layout import BEGINS, LOGS, RECORDS
from ordercast.v1.membership_pb2 import Group, Node
from tests.cluster.trial import PATIENCE_S, exit_code, log_of, start_again

#: So that a killed node is soon found missing, and one that only waits for a processor is not.
OPTIONS = ("--detection.suspect-s=2.0",)
#: Through one gateway after the other.
CALL_S = 10.0
MAP_BYTES = 1 << 30


def ask(cluster: LocalCluster, call: Callable[[ordercast.SyncConnection], Any]) -> Any:
    """Through those gateways that run."""
    gateways = [f"127.0.0.1:{m.client_port}" for m in cluster.running("gateway") if not m.is_paused]
    with ordercast.connect_sync(*gateways, timeout=CALL_S) as connection:
        return call(connection)


def group_of(cluster: LocalCluster, name: str) -> Group:
    return next(group for group in ask(cluster, lambda c: c.groups()) if group.name == name)


def node_of(cluster: LocalCluster, name: str) -> Node | None:
    return next((node for node in ask(cluster, lambda c: c.nodes()) if node.name == name), None)


def patiently(what: str, cluster: LocalCluster, call: Callable[[ordercast.SyncConnection], Any]) -> Any:
    """As soon as membership lets us: it may not have noticed yet that a node is there, or gone."""
    answers: list[Any] = []
    refusals: list[str] = []

    def is_done() -> bool:
        try:
            answers.append(ask(cluster, call))
        except (FailedPrecondition, Unavailable, DeadlineExceeded) as error:
            refusals.append(str(error))
        return bool(answers)

    try:
        wait_until(what, is_done, PATIENCE_S)
    except ClusterError as error:
        raise ClusterError(f"{error}: {refusals[-1]}") from error
    return answers[0]


# ---------------------------------------------------------------------------------------------------- changes


def begin_change(cluster: LocalCluster, name: str, change: Change, node: str = "", to: str = "") -> Group:
    """It is agreed, and under way."""
    group: Group = patiently(
        f"{change} in {name}", cluster, lambda c: c.change_replicas(name, change, node=node, to=to)
    )
    return group


def wait_until_changed(cluster: LocalCluster, begun: Group) -> Group:
    """The change that began so is done, by word of a gateway that has heard of it."""
    return wait_for_group(
        cluster, begun.name, lambda group: group.revision > begun.revision and not is_changing(group)
    )


def wait_for_group(cluster: LocalCluster, name: str, is_so: Callable[[Group], bool]) -> Group:
    seen: list[Group] = []

    def look() -> bool:
        try:
            seen.append(group_of(cluster, name))
        except OrdercastError:
            return False
        return is_so(seen[-1])

    try:
        wait_until(f"the group {name}", look, PATIENCE_S)
    except ClusterError as error:
        raise ClusterError(f"{error}: {text_of(seen[-1]) if seen else 'nobody answers'}") from error
    return seen[-1]


def change(cluster: LocalCluster, name: str, kind: Change, node: str = "", to: str = "") -> Group:
    return wait_until_changed(cluster, begin_change(cluster, name, kind, node, to))


def wait_until_settled(cluster: LocalCluster, names: Sequence[str]) -> None:
    """Every member of these groups has a full part in them, and no change is under way."""
    for name in names:
        wait_for_group(cluster, name, is_settled)


def held_by(cluster: LocalCluster, name: str, names: Sequence[str]) -> dict[str, Group]:
    """Those of the groups that it is a replica of."""
    groups = [group_of(cluster, group) for group in names]
    return {group.name: group for group in groups if name in group.replicas}


def assert_seeded_anew(cluster: LocalCluster, name: str, before: dict[str, Group]) -> None:
    """In a new configuration of each of these groups, in its own place."""
    for old in before.values():
        found = wait_for_group(cluster, old.name, lambda group, old=old: group.configuration > old.configuration)
        assert list(found.replicas) == list(old.replicas)
        assert name in found.replicas
    wait_until_settled(cluster, list(before))


def stranger_to(cluster: LocalCluster, group: Group, *but: str) -> str:
    """A node that is no member, and none of those if there is another."""
    strangers = [name for name in cluster.members if name not in group.replicas]
    return next((name for name in strangers if name not in but), strangers[0])


# ------------------------------------------------------------------------------------------------------ disks


def groups_on_disk(data: Path, groups: Sequence[Group]) -> dict[str, list[str]]:
    """Which of these groups are in which table, of a process that may run."""
    found: dict[str, list[str]] = {}
    with lmdb.open(str(data), max_dbs=4, map_size=MAP_BYTES, readonly=True) as env:
        for table in (LOGS, BEGINS, RECORDS):
            db = env.open_db(table.encode(), create=False)
            with env.begin(db=db) as txn:
                keys = [key for key, _ in txn.cursor()]
            found[table] = [group.id for group in groups if any(group.id.encode() in key for key in keys)]
    return found


def flip(data: Path, table: str, prefix: bytes, chosen: Callable[[list[bytes]], list[bytes]]) -> list[bytes]:
    """Turn a bit in values of a process that is not running, under some of the keys that begin so; which."""
    with lmdb.open(str(data), max_dbs=4, map_size=MAP_BYTES) as env:
        db = env.open_db(table.encode(), create=False)
        with env.begin(write=True, db=db) as txn:
            keys = chosen([key for key, _ in txn.cursor() if key.startswith(prefix)])
            for key in keys:
                value = txn.get(key)
                txn.put(key, value[:-1] + bytes([value[-1] ^ 1]))
    return keys


def wipe(cluster: LocalCluster, name: str) -> None:
    cluster.kill(name)
    shutil.rmtree(cluster.members[name].data)


def assert_refused(cluster: LocalCluster, name: str, *texts: str) -> None:
    """It does not start, and says why."""
    before = len(log_of(cluster, name))
    cluster.start([name])
    assert exit_code(cluster, name) == EXIT_REFUSED
    for text in texts:
        assert text in log_of(cluster, name)[before:]


def give_up_disk(cluster: LocalCluster, name: str) -> None:
    patiently(f"the disk of {name} is given up", cluster, lambda c: c.give_up_disk(name))


def take_in_as_new(cluster: LocalCluster, name: str) -> None:
    """Given up, and started with an empty disk."""
    give_up_disk(cluster, name)
    start_again(cluster, name)
