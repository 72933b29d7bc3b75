"""The client in examples/clients/node, which was written from docs/wire.md alone, beside the SDK's."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import ordercast
from ordercast.local.cluster import LocalCluster
from ordercast.local.setup import create_groups
from tests.cluster.asking import in_time, payloads
from tests.cluster.conftest import MakeCluster

CLIENT = Path(__file__).parents[2] / "examples/clients/node"
NODE = shutil.which("node")
RUN_S_MAX = 60

pytestmark = pytest.mark.skipif(NODE is None, reason="there is no Node here")


@pytest.fixture(scope="module")
def cluster(make_module_cluster: MakeCluster) -> LocalCluster:
    cluster = make_module_cluster()
    create_groups(cluster.gateways, ["u", "v", "own"], shared=("u", "v"))
    return cluster


def node(*arguments: str) -> list[dict]:
    assert NODE is not None
    done = subprocess.run(
        [NODE, str(CLIENT / "main.mjs"), *arguments],
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_it_publishes_is_read_by_both_where_its_receipts_say(cluster: LocalCluster) -> None:
    gateways = ",".join(cluster.gateways)
    receipts = node("publish", gateways, "u,own", "one", "two") + node("publish", gateways, "v,u", "three")
    assert [receipt["offsets"] for receipt in receipts] == [
        {"own": 0, "u": 0},
        {"own": 1, "u": 1},
        {"u": 2, "v": 0},
    ]
    assert [len(receipt["cells"]) for receipt in receipts] == [2, 2, 1]
    for group, texts in {"u": ["one", "two", "three"], "v": ["three"], "own": ["one", "two"]}.items():
        there = node("read", gateways, group)
        assert [(delivery["offset"], delivery["payload"]) for delivery in there] == list(enumerate(texts))
        assert payloads(cluster.gateways[0], group) == [text.encode() for text in texts]
    keys = [receipt["orderKey"] for receipt in receipts]
    assert keys == sorted(keys)


def test_it_goes_on_to_the_next_gateway_and_says_what_is_wrong(cluster: LocalCluster) -> None:
    (receipt,) = node("publish", f"127.0.0.1:1,{cluster.gateways[1]}", "own", "another")
    assert list(receipt["offsets"]) == ["own"]
    with pytest.raises(AssertionError, match="unknown group"):
        node("publish", cluster.gateways[0], "nothing-there", "lost")


def test_it_reads_what_the_sdk_publishes_to_many_sets_at_once(cluster: LocalCluster) -> None:
    sets = [("u",), ("v",), ("u", "v")]

    async def publish() -> list[ordercast.Receipt]:
        async with ordercast.connect(*cluster.gateways) as oc:
            soon = [await oc.publish_soon(b"%d" % number, to=sets[number % 3]) for number in range(30)]
            return [await receipt for receipt in soon]

    before = len(node("read", cluster.gateways[0], "u"))
    receipts = in_time(publish())
    there = {delivery["offset"]: delivery for delivery in node("read", cluster.gateways[2], "u")[before:]}
    for number, receipt in enumerate(receipts):
        if "u" in sets[number % 3]:
            assert there[receipt.offsets["u"]]["payload"] == str(number)
            assert there[receipt.offsets["u"]]["orderKey"] == receipt.order_key.hex()
    assert len(there) == 20


def test_it_is_as_short_as_it_says() -> None:
    assert len((CLIENT / "ordercast.mjs").read_text().splitlines()) < 200
