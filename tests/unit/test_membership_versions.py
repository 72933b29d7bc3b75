"""Members of two versions apply one log: before the cluster's level rises, they must come to the same state.

The newer one says more about nodes (their level), and nothing else. Answers count too, to the letter: members
remember them up to so many bytes.
"""

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ordercast.v1.membership_pb2 import (
    ClusterState,
    CreateDomain,
    CreateGroup,
    Cursor,
    DeleteCursor,
    DeleteGroup,
    EndIncarnation,
    MarkNode,
    MoveCursors,
    ReadCursors,
    RegisterNode,
    RemoveGroup,
    RetireIncarnations,
)
from tests.cluster.releases import code_of_previous_release
from tests.unit.test_membership_state import ALL, Cluster

NAMES = ("a", "b", "c", "d", "e")
GROUPS = ("x", "y", "z")
COMMANDS_COUNT = 1500
SEEDS = range(1, 4)

#: Lines of slots in hexadecimal -> the state that they come to.
APPLY = """
import sys
from ordercast.membership.state import State
state = State()
for slot, line in enumerate(sys.stdin):
    state.apply(slot, bytes.fromhex(line.strip()))
print(state.to_bytes().hex())
"""


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return code_of_previous_release(tmp_path_factory.mktemp("previous"))


def applied_by(source: Path, cluster: Cluster) -> ClusterState:
    """The log as another version understands it."""
    lines = "".join(f"{(slot or b'').hex()}\n" for slot in cluster.log)
    done = subprocess.run(
        [sys.executable, "-c", APPLY],
        input=lines,
        env=os.environ | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return ClusterState.FromString(bytes.fromhex(done.stdout.strip()))


def without_levels(state: ClusterState) -> ClusterState:
    for node in state.nodes:
        node.ClearField("level")
    return state


def some_command(random: Random, cluster: Cluster) -> dict[str, Any]:
    """One that both versions know, sensible or not."""
    name, group = random.choice(NAMES), random.choice(GROUPS)
    node = cluster.state.nodes.get(name)
    incarnation = node.incarnation if node is not None and random.random() < 0.9 else 1
    match random.choice(
        ("register", "mark", "mark", "end", "retire", "domain", "group", "group", "gone", "cursor")
    ):
        case "register":
            node_id = b"disk of " + name.encode() + b"!" * (random.random() < 0.1)
            services = ALL if random.random() < 0.8 else random.choice([("sequencer",), ("consensus",), ("?",)])
            register = RegisterNode(name=name, node_id=node_id, services=services, peer_address=f"{name}:1")
            register.zone, register.level = random.choice(("", "u", "v")), random.randint(0, 1)
            return {"register": register}
        case "mark":
            marks = {"suspected": random.random() < 0.2, "read_only": random.random() < 0.1}
            return {"mark_node": MarkNode(name=name, incarnation=incarnation, **marks)}
        case "end":
            return {"end_incarnation": EndIncarnation(name=name, incarnation=incarnation)}
        case "retire":
            return {"retire": RetireIncarnations(below=random.randint(0, cluster.state.incarnation_last + 1))}
        case "domain":
            settings = random.choice([{}, {"log_chunk": "64"}, {"log_chunk": "many"}])
            protocol = random.choice(("scalatom", "scalatom", "none"))
            return {"create_domain": CreateDomain(name=f"domain-{name}", protocol=protocol, settings=settings)}
        case "group":
            return {"create_group": CreateGroup(name=group, replicas=random.randint(0, 4))}
        case "gone":
            known = cluster.state.groups.get(group)
            if known is not None and random.random() < 0.6:
                return {"remove_group": RemoveGroup(id=known.id)}
            return {"delete_group": DeleteGroup(name=group)}
    cursor = Cursor(group=group, name=f"cursor-{name}", offset=random.randint(0, 9))
    return random.choice(
        [
            {"move_cursors": MoveCursors(cursors=[cursor])},
            {"delete_cursor": DeleteCursor(group=group, name=cursor.name)},
            {"read_cursors": ReadCursors(group=group)},
        ]
    )


def assert_same_state(source: Path, cluster: Cluster) -> None:
    assert cluster.state.level == 0
    mine = without_levels(ClusterState.FromString(cluster.state.to_bytes()))
    assert applied_by(source, cluster) == mine


@pytest.mark.parametrize("seed", SEEDS)
def test_both_versions_come_to_the_same_state(previous, seed):
    random, cluster = Random(seed), Cluster()
    for name in NAMES[:3]:
        assert cluster.register(name, level=1).code == 0
    codes = [cluster.do(**some_command(random, cluster)).code for _ in range(COMMANDS_COUNT)]
    assert codes.count(0) > COMMANDS_COUNT // 4
    assert_same_state(previous, cluster)


def test_a_setting_that_only_one_version_knows_is_refused_by_both(previous):
    cluster = Cluster()
    settings = {"copy_bytes_per_s": "100000"}
    cluster.do(create_domain=CreateDomain(name="d", protocol="scalatom", settings=settings))
    assert_same_state(previous, cluster)


def test_who_followed_an_older_member_hears_the_levels_of_all_nodes_when_the_level_rises():
    cluster = Cluster()
    for name in NAMES[:3]:
        cluster.register(name, level=1)
    # So far it was told about the nodes by a member that did not note their levels.
    revision = cluster.state.revision
    assert cluster.raise_level().code == 0
    told = {node.name: node.level for node in cluster.state.changes_since(revision).nodes}
    assert told == dict.fromkeys(NAMES[:3], 1)
