"""What may be asked of a group whatever its members are: the interface of the kinds (`Traits.members`).

Nobody outside this package asks which kind a group is of. How members change is decided in membership, which has
its own half of each kind (membership/kinds/).
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING
from typing import Protocol as Interface

if TYPE_CHECKING:  # the command line asks, and does not want to wait for it
    from ordercast.v1.membership_pb2 import Configuration, Group


class Superseded(Exception):  # noqa: N818 (it names what happened)
    """A change that is waited for was cancelled; perhaps another one took its place."""


class Kind(Interface):
    @property
    def noun(self) -> str:
        """What one of a group's configurations is called."""
        ...

    @property
    def follows_processes(self) -> bool:
        """Whether one configuration follows another as processes come and go, and not only on demand."""
        ...

    # ------------------------------------------------------------------------------------------- who is where

    def learners(self, group: "Group") -> list[str]:
        """Who copies the log, to be a replica in a later configuration."""
        ...

    def has_newcomers(self, group: "Group") -> bool:
        """Whether there may be learners: asked often, so it looks at little."""
        ...

    def needed(self, group: "Group") -> list[tuple[str, Sequence[str], Collection[str]]]:
        """Of whom a majority has to be up besides the replicas' own, for the group to go on: what they are called,
        who they are, and who of them lost what it had stored.
        """
        ...

    # --------------------------------------------------------------------------------------- what goes on there

    def is_at_rest(self, group: "Group") -> bool:
        """Whether members deliver the same at much the same time: nobody delivers what others had long before."""
        ...

    def is_waited_for(self, group: "Group", process: str, up: Collection[str]) -> bool:
        """Whether a process that stops should stay until the group goes on without it, which it then can."""
        ...

    # ------------------------------------------------------------------------------- what is on a damaged disk

    def begins_without(self, group: "Group", incarnation: int) -> bool:
        """Whether the present configuration takes nothing along of what such a life has on its disk."""
        ...

    def keeps_log_of(self, group: "Group", process: str) -> bool:
        """Whether a process that is no member goes on from where its own log ends: what is there counts."""
        ...

    # --------------------------------------------------------------------------- what operators see, and wait for

    def wanted(self, begun: "Group") -> "Configuration":
        """What a change asks for that was answered with this."""
        ...

    def has_come(self, group: "Group", wanted: "Configuration", up: Callable[[], Collection[str]]) -> bool:
        """Whether that change is done. Raises Superseded."""
        ...

    def stage(self, group: "Group") -> str:
        """What is under way, in a few words; empty if nothing is."""
        ...

    def lines(self, group: "Group") -> list[tuple[str, str]]:
        """What there is to see of its configurations, with a heading each."""
        ...


def check_members(replicas: Sequence[str], wanted: "Configuration") -> None:
    """Members are compared, too: after a cancelled change the next one may have the same number."""
    if list(replicas) != list(wanted.replicas):
        raise Superseded


def copying(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {'copies' if len(names) == 1 else 'copy'} the log"
