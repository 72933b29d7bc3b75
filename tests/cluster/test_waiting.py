"""`ordercast waiting` beside nodes that are stopped: it names them, and what waits for them."""

import threading

import ordercast
from ordercast.errors import OrdercastError
from ordercast.local.cluster import wait_until
from ordercast.local.setup import create_groups
from tests.cli.cluster_commands.commands import document, run, text

PATIENCE_S = 60.0


def test_nodes_that_are_stopped_are_named_with_what_waits_for_them(make_cluster):
    """One of three stopped holds nothing up. With two of them, a message waits for their stamps."""
    cluster = make_cluster()
    create_groups(cluster.gateways, ["a", "b"])
    at = ("-g", cluster.gateways[0])
    with ordercast.connect_sync(cluster.gateways[0]) as oc:
        oc.publish(b"before", to=["a", "b"])
    assert text("waiting", *at).splitlines() == ["nothing waits"]
    for name in ("node-2", "node-3"):
        cluster.pause(name)
    publishing = threading.Thread(target=publish, args=(cluster.gateways[0],))
    publishing.start()
    try:

        def blockers() -> set[str]:
            return {each["blocker"] for each in document("waiting", *at)["blockers"]}

        wait_until(
            "what is missing is named", lambda: {"replica:node-2", "replica:node-3"} <= blockers(), PATIENCE_S
        )
        silent = {node["node"] for node in document("waiting", *at)["nodes"] if node["error"]}
        assert silent == {"node-2", "node-3"}
        shown = text("waiting", "--watch", "--count", "1", *at)
        assert "node-2 does not answer" in shown
        assert "replica:node-2, which does not answer," in shown
        assert document("waiting", "--domain", "default", *at)["blockers"]
        assert run("waiting", "--domain", "elsewhere", *at).exit_code == 3
    finally:
        for name in ("node-2", "node-3"):
            cluster.resume(name)
        publishing.join()
    wait_until("it is delivered", lambda: text("waiting", *at).splitlines() == ["nothing waits"], PATIENCE_S)


def publish(gateway: str) -> None:
    """Until it has its receipt, once the nodes go on; what is refused meanwhile is tried again."""
    with ordercast.connect_sync(gateway, timeout=PATIENCE_S) as oc:
        try:
            oc.publish(b"waits", to=["a", "b"])
        except OrdercastError:
            return
