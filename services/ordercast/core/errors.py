"""Whose mistake it was.

A peer's mistake is refused and counted, and the machine goes on as if nothing had arrived. So only what was
received can be refused: whatever is raised for another event is a mistake of our own. That, as a broken invariant,
stops the process, before what is wrong in memory reaches a disk or a peer.
"""


class RemoteProtocolError(Exception):
    """A peer or a client sent what it must not send. Nothing was stored."""


class InvariantBroken(Exception):  # noqa: N818 (it names what happened, not a kind of error)
    """This process can no longer be trusted: stop it."""
