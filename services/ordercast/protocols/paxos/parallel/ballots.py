"""Ballots: rounds are compared first, then incarnations, which are unique. So a ballot is one attempt of one life.

A restarted leader is a new incarnation. It never uses a ballot again, though it keeps nothing on disk about those
that it has used.
"""

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.v1.parallel_pb2 import CellBallot

Ballot = tuple[int, int]

#: Below every ballot.
NONE: Ballot = (0, 0)


def ballot_of(message: CellBallot) -> Ballot:
    if message.round > CLOCK_MAX:
        raise RemoteProtocolError("a round beyond all limits")
    return (message.round, message.incarnation)


def to_message(ballot: Ballot) -> CellBallot:
    return CellBallot(round=ballot[0], incarnation=ballot[1])
