"""What is always so between two steps of membership's machine: a few comparisons, however large the cluster is."""

from typing import TYPE_CHECKING

from ordercast.core.errors import InvariantBroken

if TYPE_CHECKING:
    from ordercast.membership.machine import Membership


def check(member: "Membership") -> None:
    flying = len(member.flight[1]) if member.flight is not None else 0
    waiting = len(member.next.commands)
    # "Whoever waits is sent on": only the leader keeps commands, its own duties among them.
    if member.leader != member.process and (flying or waiting or member.duties):
        raise InvariantBroken(f"{flying + waiting} commands are kept by one that does not lead")
    # "Commands that arrive while a batch is under way are the next batch."
    if waiting and member.flight is None:
        raise InvariantBroken(f"{waiting} commands wait, and nothing is under way")
    if waiting > member.settings.batch_count_max or member.next.size > member.settings.log.value_bytes_max:
        raise InvariantBroken(f"{waiting} commands of {member.next.size} bytes are more than a slot takes")
    # "A command has an id, and repeating it gives the first answer": each duty is on its way once.
    if len(member.duties) > flying + waiting:
        raise InvariantBroken(f"{len(member.duties)} duties are under way in {flying + waiting} commands")
    # "A member may be behind but never goes back."
    if member.snapshot_at > member.state.revision:
        raise InvariantBroken(f"a snapshot before slot {member.snapshot_at} of {member.state.revision}")
