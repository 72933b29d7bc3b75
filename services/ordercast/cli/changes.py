"""What is said of a group whose replicas change, and how to wait until they have."""

from typing import TYPE_CHECKING, Any

from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.placed import describing
from ordercast.cli.views import view_document
from ordercast.core.members import kind_of, learners_of
from ordercast.core.members.kind import Superseded

if TYPE_CHECKING:
    from ordercast.cli.waiting import WaitDisplay
    from ordercast.client.sync import SyncConnection
    from ordercast.v1.gateway_pb2 import DescribeGroupResponse, ReplicaStatus
    from ordercast.v1.membership_pb2 import Configuration, Group
    from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse


# --------------------------------------------------------------------------------------------------- waiting


def wait_for_change(client: "SyncConnection", begun: "Group", waiting: "WaitDisplay") -> "Group":
    """Until the change is done that was answered with `begun`; the group as it is then."""
    wanted = kind_of(begun).wanted(begun)
    describe = describing(client, begun)
    while True:
        answer = describe()
        group = answer.group
        if group.id != begun.id:
            fail(ExitCode.NOT_FOUND, f"the group {begun.name} was deleted meanwhile")
        # A gateway that has not heard of the change would seem to say that it is over.
        if group.revision >= begun.revision:
            try:
                if kind_of(group).has_come(group, wanted, lambda: up_of(client)):
                    return group
            except Superseded:
                fail(ExitCode.NO, f"the change of {group.name} was cancelled: {replicas_text(group)}")
            waiting.tell(f"{group.name}: {stage_of(group)}", numbers_of(answer))
        waiting.pause()


def up_of(client: "SyncConnection") -> list[str]:
    return [node.name for node in client.cluster().nodes if not (node.suspected or node.ended)]


# ------------------------------------------------------------------------------------------------------ texts


def replicas_text(group: "Group") -> str:
    return f"{kind_of(group).noun} {group.configuration}, replicas on {', '.join(group.replicas)}"


def stage_of(group: "Group") -> str:
    """What is under way, in a few words; empty if nothing is."""
    return kind_of(group).stage(group)


def numbers_of(answer: "DescribeGroupResponse") -> str:
    """How far those are that copy the log, if they say so: envelopes that they have, of those that there are."""
    head = max((replica.log.position for replica in answer.replicas if not replica.error), default=None)
    if head is None:
        return ""
    return ", ".join(
        f"{learner.node}: {min(learner.log.position, head)} of {head}"
        for learner in answer.learners
        if not learner.error
    )


def under_way(answer: "DescribeGroupResponse") -> str:
    """Both; empty if nothing is."""
    stage, numbers = stage_of(answer.group), numbers_of(answer)
    return f"{stage} ({numbers})" if numbers else stage


# -------------------------------------------------------------------------------------------------- documents


def change_document(group: "Group") -> dict[str, Any]:
    """The part of a group's document that is about its configurations."""
    return {
        "next": configuration_document(group.next) if group.HasField("next") else None,
        "previous": configuration_document(group.previous) if group.HasField("previous") else None,
        "starting": list(group.starting),
        "lost": list(group.lost),
        "learners": learners_of(group),
    } | view_document(group)


def configuration_document(configuration: "Configuration") -> dict[str, Any]:
    return {
        "number": configuration.number,
        "replicas": list(configuration.replicas),
        "acceptors": list(configuration.acceptors),
    }


def replica_document(replica: "ReplicaStatus") -> dict[str, Any]:
    """Without a description, why there is none."""
    log = None if replica.error else replica.log
    return {
        "node": replica.node,
        "error": replica.error or None,
        "first_offset": log.first_offset if log else None,
        "next_offset": log.next_offset if log else None,
        "bytes": log.bytes if log else None,
        "position": log.position if log else None,
        "facts": facts_of(log) if log else {},
    }


def facts_of(log: "DescribeReplicaResponse") -> dict[str, str]:
    """What the protocol has to say of a replica."""
    return {fact.name: fact.value for fact in log.facts}


def latest_facts(answer: "DescribeGroupResponse") -> dict[str, str]:
    """What the protocol has to say of a group, by the replica that knows the latest."""
    told = [replica.log for replica in answer.replicas if not replica.error]
    return facts_of(max(told, key=lambda log: log.facts_number)) if told else {}
