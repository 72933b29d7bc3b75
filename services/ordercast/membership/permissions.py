"""Who may say which command to membership: a table, and the check of a caller against it.

A caller is who its certificate names, never who the command says. Without TLS no caller is known, and whoever
reaches the peers' port may say what processes say. What the leader says to itself, nobody else may say.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

import grpc

from ordercast.runtime.transport.status import Refused
from ordercast.v1.membership_pb2 import Command, Node


class Speaker(Enum):
    #: The process that the command names, of itself.
    ITSELF = "itself"
    #: A process that runs a gateway, for one of its clients.
    GATEWAY = "gateway"
    #: The membership node that leads, as one of its duties: it does not call itself, so no caller may say it.
    LEADER = "leader"


SPEAKERS: dict[str, Speaker] = {
    "found": Speaker.LEADER,
    "register": Speaker.ITSELF,
    "create_domain": Speaker.GATEWAY,
    "create_group": Speaker.GATEWAY,
    "create_groups": Speaker.GATEWAY,
    "delete_group": Speaker.GATEWAY,
    "update_group": Speaker.GATEWAY,
    "remove_group": Speaker.LEADER,
    "mark_node": Speaker.LEADER,
    "end_incarnation": Speaker.ITSELF,
    "retire": Speaker.LEADER,
    "move_cursors": Speaker.GATEWAY,
    "delete_cursor": Speaker.GATEWAY,
    "read_cursors": Speaker.GATEWAY,
    "change_replicas": Speaker.GATEWAY,
    "cancel_change": Speaker.GATEWAY,
    "begin_configuration": Speaker.LEADER,
    "record_started": Speaker.LEADER,
    "record_lost": Speaker.LEADER,
    "give_up_disk": Speaker.GATEWAY,
    "drain_node": Speaker.GATEWAY,
    "remove_node": Speaker.GATEWAY,
    "raise_level": Speaker.LEADER,
    "define_view": Speaker.LEADER,
    "complete_view": Speaker.LEADER,
    "note_protocols": Speaker.LEADER,
}

#: Reasons of refusals that rest on what this member has heard of nodes: one that does not lead may be behind.
BY_STATE = ("UNKNOWN_CALLER", "NOT_A_GATEWAY")


def check_speaker(command: Command, names: Sequence[str] | None, nodes: Mapping[str, Node]) -> None:
    """Refused if a caller with these names in its certificate may not say this; None: nothing names it.

    `nodes` are the registered ones, as far as this member has heard. An empty command is not judged here.
    """
    what = command.WhichOneof("what")
    if what is None:
        return
    speaker = SPEAKERS[what]
    if speaker is Speaker.LEADER:
        raise _denied(f"{what} is what the leading membership node says to itself", "NOT_FOR_CALLERS")
    if names is None:
        return
    if speaker is Speaker.ITSELF:
        check_name(names, getattr(command, what).name)
    else:
        _check_gateway(what, names, nodes)


def check_name(names: Sequence[str] | None, name: str) -> None:
    """What a process says of itself, nobody says for it. None: there is no TLS."""
    if names is not None and name not in names:
        raise _denied(f"the certificate is not {name!r}'s", "WRONG_CERTIFICATE")


def _check_gateway(what: str, names: Sequence[str], nodes: Mapping[str, Node]) -> None:
    known = [nodes[name] for name in names if name in nodes]
    if not known:
        # Not for good: it may have registered at another leader, of which this one has not heard yet.
        raise Refused(
            grpc.StatusCode.FAILED_PRECONDITION,
            f"no process that calls itself {list(names)} is known",
            "UNKNOWN_CALLER",
        )
    if not any("gateway" in node.services for node in known):
        raise _denied(f"{what} is what gateways say, and {known[0].name!r} runs none", "NOT_A_GATEWAY")


def _denied(message: str, reason: str) -> Refused:
    return Refused(grpc.StatusCode.PERMISSION_DENIED, message, reason)
