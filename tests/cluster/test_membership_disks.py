"""Membership nodes with empty disks: at the founding, and when one comes back without what it had voted for."""

import os
import shutil

import grpc
import pytest

from ordercast.local.cluster import HOST, ClusterError, LocalCluster, free_ports, wait_until
from ordercast.local.setup import create_groups
from ordercast.runtime.process.exits import EXIT_REFUSED
from ordercast.v1.membership_pb2 import Command, CommandResult, ExecuteRequest, GiveUpDisk
from ordercast.v1.membership_pb2_grpc import MembershipServiceStub
from tests.cluster.trial import (
    NO_LEADER_S,
    PATIENCE_S,
    assert_nobody_leads_any_more,
    exit_code,
    log_of,
    membership_leader,
    start_again,
    wait_for_log,
)

MUTE = "this membership node does not vote"
VOTES = "this membership node votes"


def execute(cluster: LocalCluster, command: Command) -> CommandResult | None:
    """By whoever leads; None if nobody does."""
    command.request_id = os.urandom(16)
    for member in cluster.running("membership"):
        with grpc.insecure_channel(f"{HOST}:{member.peer_port}") as channel:
            try:
                request = ExecuteRequest(command=command)
                return MembershipServiceStub(channel).Execute(request, timeout=5).result
            except grpc.RpcError:
                continue
    return None


def give_up_disk(cluster: LocalCluster, name: str) -> None:
    """As soon as membership lets us: when it has noticed that the node is gone."""
    refusals = ["nobody leads"]

    def is_given_up() -> bool:
        result = execute(cluster, Command(give_up_disk=GiveUpDisk(node=name)))
        if result is not None and result.code != grpc.StatusCode.OK.value[0]:
            refusals.append(result.message)
        return result is not None and result.code == grpc.StatusCode.OK.value[0]

    try:
        wait_until(f"the disk of {name} is given up", is_given_up, PATIENCE_S)
    except ClusterError as error:
        raise ClusterError(f"{error}: {refusals[-1]}") from error


def test_a_cluster_is_founded_when_all_its_membership_nodes_were_there_and_not_before(make_cluster):
    cluster = make_cluster(is_started=False, separate=True)
    early = ["membership-1", "membership-2"]
    cluster.start(early)
    for name in early:
        wait_for_log(cluster, name, MUTE)
    assert membership_leader(cluster, NO_LEADER_S) is None
    # What they said to each other outlives them.
    cluster.kill("membership-1")
    cluster.start(name for name, member in cluster.members.items() if not member.is_running)
    cluster.wait_healthy(timeout_s=PATIENCE_S)
    # From then on two are enough, whichever they are.
    for name in ("membership-1", "membership-2", "membership-3"):
        wait_for_log(cluster, name, VOTES)
    cluster.kill("membership-3")
    assert membership_leader(cluster) is not None
    create_groups(cluster.gateways, ["a"])
    # And never other ones: a majority of two lists need not meet.
    cluster.members["membership-3"].extra = [f"--membership=membership-4={HOST}:{free_ports(1)[0]}"]
    cluster.start(["membership-3"])
    assert exit_code(cluster, "membership-3") == EXIT_REFUSED
    members = "membership-1,membership-2,membership-3"
    assert f"are {members}, and not {members},membership-4" in log_of(cluster, "membership-3")


@pytest.mark.long
def test_a_membership_node_without_its_disk_votes_again_when_the_old_disk_is_given_up(make_cluster):
    cluster = make_cluster(separate=True)
    lost = cluster.members["membership-3"]
    cluster.kill(lost.name)
    shutil.rmtree(lost.data)
    create_groups(cluster.gateways, ["with-two"])

    # One that votes and one that does not are no majority.
    cluster.kill("membership-2")
    before = len(log_of(cluster, lost.name))
    cluster.start([lost.name])
    wait_for_log(cluster, "membership-1", "came back without its disk")
    assert_nobody_leads_any_more(cluster)
    assert MUTE in log_of(cluster, lost.name)[before:]

    # Nor is it taken for the old one.
    start_again(cluster, "membership-2")
    assert exit_code(cluster, lost.name) == EXIT_REFUSED
    give_up_disk(cluster, lost.name)
    start_again(cluster, lost.name)
    wait_until("it votes", lambda: VOTES in log_of(cluster, lost.name)[before:], PATIENCE_S)

    # Now it counts, also after a restart.
    cluster.kill("membership-2")
    assert membership_leader(cluster) is not None
    create_groups(cluster.gateways, ["with-the-new-one"])
    cluster.kill(lost.name)
    before = len(log_of(cluster, lost.name))
    start_again(cluster, lost.name)
    create_groups(cluster.gateways, ["with-it-again"])
    assert MUTE not in log_of(cluster, lost.name)[before:]
