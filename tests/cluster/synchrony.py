"""Virtually synchronous groups on a real cluster, for tests: trials in domains of their own, views, and logs."""

import asyncio
from collections.abc import Callable, Sequence

import ordercast
from ordercast.core.ids import group_name
from ordercast.local.casts import CastLog, position_of
from ordercast.local.cluster import LocalCluster, wait_until
from ordercast.local.configurations import is_settled
from ordercast.local.evidence import Evidence
from ordercast.local.load import COLLECT_S_MAX, collect_logs
from ordercast.local.setup import create_domain, create_groups
from ordercast.protocols.isis.stamps import StampCodec
from ordercast.v1.membership_pb2 import Group
from tests.cluster.changing import ask, wait_for_group, wait_until_settled
from tests.cluster.trial import PATIENCE_S, Progress, gateway_of, mend, trial

CAUSAL, TOTAL = "causal", "total"
#: What reads where entries come from.
CODEC = StampCodec()


def with_domains(cluster: LocalCluster) -> LocalCluster:
    """One for each ordering, with its name."""
    for ordering in (CAUSAL, TOTAL):
        create_domain(cluster.gateways, ordering, "isis", {"ordering": ordering})
    return cluster


def run_in_views(
    cluster: LocalCluster, groups: Sequence[str], during: Callable[[Progress], None], ordering: str = CAUSAL
) -> None:
    """A trial with these groups. Where nothing may be sent to several, the second has a producer of its own."""
    create_groups(cluster.gateways, groups, domain=ordering)
    together, beside = (groups, ()) if ordering == CAUSAL else (groups[:1], groups[1:2])
    report = asyncio.run(trial(cluster.gateways, during, together, beside, lambda: mend(cluster)))
    report.check()
    wait_until_settled(cluster, groups)
    assert_view_synchrony(cluster, groups)


def assert_view_synchrony(cluster: LocalCluster, groups: Sequence[str], *, is_at_rest: bool = True) -> None:
    """From what real replicas logged, whether readers are shown it or not. Under load, some may be ahead.

    Each log is the beginning of every longer one, so whoever goes from one view to the next has delivered the same
    in between. Every position is there, and views rise: so those of one view are side by side.
    """
    evidence = Evidence()
    running = next(member for member in cluster.running("gateway") if not member.is_paused)
    timeout_s = COLLECT_S_MAX if is_at_rest else 0.0
    collect_logs(gateway_of(cluster, running.name), evidence, timeout_s, groups=groups)
    logs_of = {group_name(id_): (id_, logs) for id_, logs in evidence.logs.items()}
    for name in groups:
        id_, logs = logs_of[name]
        longest = max(logs.values(), key=len)
        for replica, entries in logs.items():
            assert entries == longest[: len(entries)], f"{replica} has another log of {name}"
        assert [position_of(entry) for entry in longest] == list(range(len(longest)))
        views = [CODEC.place_of(entry.protocol).view for entry in longest]
        assert views == sorted(views)
        log = CastLog(id_, CODEC)
        assert not [problem for entry in longest for problem in log.take(entry)]


# ------------------------------------------------------------------------------------------------------ views


def holder_of(cluster: LocalCluster, group: str) -> str:
    """Of the token, as a replica that answers says."""
    described = ask(cluster, lambda connection: connection.describe_group(group))
    holders: list[str] = [replica.log.orderer for replica in described.replicas if replica.log.orderer]
    return holders[0]


def wait_until_left_out(cluster: LocalCluster, group: str, name: str) -> Group:
    """A view without it is complete, by word of a gateway elsewhere: its own may not hear of it."""
    others = [m.name for m in cluster.running("gateway") if m.name != name and not m.is_paused]
    gateway = gateway_of(cluster, others[0])
    seen: list[Group] = []

    def is_left_out() -> bool:
        with ordercast.connect_sync(gateway) as connection:
            seen.append(connection.describe_group(group).group)
        return name not in seen[-1].replicas and not seen[-1].HasField("previous")

    wait_until(f"a view of {group} without {name}", is_left_out, PATIENCE_S)
    return seen[-1]


def wait_until_back(cluster: LocalCluster, group: str, name: str, without: Group | None = None) -> Group:
    """In a view after the one without it, if there was one: who was cut off answers with the view before."""
    after = without.configuration if without is not None else 0
    return wait_for_group(
        cluster,
        group,
        lambda found: found.configuration > after and name in found.replicas and is_settled(found),
    )


def wait_for_another_view(cluster: LocalCluster, before: Group) -> Group:
    """Everybody who should be in it is, has installed it, and nobody is about to leave."""
    return wait_for_group(
        cluster,
        before.name,
        lambda found: found.configuration > before.configuration and is_settled(found) and not found.leaving,
    )
