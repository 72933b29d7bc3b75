"""What is said of a group whose replicas change, and how to wait until they have."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.views import is_in_place, stage_of_views, view_document
from ordercast.core.members import has_views, learners_of

if TYPE_CHECKING:
    from ordercast.cli.waiting import Waiting
    from ordercast.client.sync import SyncConnection
    from ordercast.v1.gateway_pb2 import DescribeGroupResponse, ReplicaStatus
    from ordercast.v1.membership_pb2 import Configuration, Group


class Superseded(Exception):  # noqa: N818 (it names what happened)
    """The change was cancelled; perhaps another one took its place."""


# --------------------------------------------------------------------------------------------------- waiting


def wait_for_change(client: "SyncConnection", begun: "Group", waiting: "Waiting") -> "Group":
    """Until the change is done that was answered with `begun`; the group as it is then."""
    wanted = wanted_by(begun)
    while True:
        answer = client.describe_group(begun.name)
        group = answer.group
        if group.id != begun.id:
            fail(ExitCode.NOT_FOUND, f"the group {begun.name} was deleted meanwhile")
        # A gateway that has not heard of the change would seem to say that it is over.
        if group.revision >= begun.revision:
            try:
                if is_placed(client, group, wanted) if has_views(group) else is_done(group, wanted):
                    return group
            except Superseded:
                fail(ExitCode.NO, f"the change of {group.name} was cancelled: {replicas_text(group)}")
            waiting.tell(f"{group.name}: {stage_of(group)}", numbers_of(answer))
        waiting.pause()


def wanted_by(begun: "Group") -> "Configuration":
    """A change that nobody has to copy anything for has begun when it is answered."""
    from ordercast.v1.membership_pb2 import Configuration

    if begun.HasField("next"):
        return begun.next
    if has_views(begun):
        return Configuration(number=begun.configuration, replicas=begun.placement)
    return Configuration(number=begun.configuration, replicas=begun.replicas, acceptors=begun.acceptors)


def is_done(group: "Group", wanted: "Configuration") -> bool:
    """Members are compared too: after a cancelled change the next one has the same number."""
    if group.configuration > wanted.number:
        # Another change came behind it, which it could not while this one was under way.
        return True
    if group.configuration == wanted.number:
        check_members(group.replicas, wanted)
        return not group.HasField("previous")
    check_members(group.next.replicas, wanted)
    return False


def is_placed(client: "SyncConnection", group: "Group", wanted: "Configuration") -> bool:
    """Views come and go meanwhile, and say nothing about the change: only who is in the latest one does."""
    check_members(group.next.replicas if group.HasField("next") else group.placement, wanted)
    return is_in_place(group, list(wanted.replicas), list(client.cluster().nodes))


def check_members(replicas: Sequence[str], wanted: "Configuration") -> None:
    if list(replicas) != list(wanted.replicas):
        raise Superseded


# ------------------------------------------------------------------------------------------------------ texts


def replicas_text(group: "Group") -> str:
    kind = "view" if has_views(group) else "configuration"
    return f"{kind} {group.configuration}, replicas on {', '.join(group.replicas)}"


def stage_of(group: "Group") -> str:
    """What is under way, in a few words; empty if nothing is."""
    if has_views(group):
        return stage_of_views(group)
    if group.HasField("next"):
        learners = learners_of(group)
        if not learners:
            return f"configuration {group.next.number} is about to begin"
        copy = "copies the log" if len(learners) == 1 else "copy the log"
        return f"{', '.join(learners)} {copy} for configuration {group.next.number}"
    if group.HasField("previous"):
        text = f"configuration {group.configuration} has begun"
        return f"{text}, not yet started on {', '.join(group.starting)}" if group.starting else text
    if group.starting:
        return f"not yet started on {', '.join(group.starting)}"
    return ""


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
        "view": log.view or None if log else None,
        "token_holder": log.token_holder or None if log else None,
    }
