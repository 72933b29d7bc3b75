"""Which view of a virtually synchronous group comes next: a rule, without any state of its own.

[BSS91 7.4] Failure detection may be wrong, so a view is no statement about who is alive. It is a decision, taken
in one order for all, about who goes on; those that were left out wrongly come back in a later view.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ordercast.core.quorums import majority


@dataclass(frozen=True, slots=True)
class Defined:
    """A view, with the life of each member that is meant, and who leaves of its own will as it begins."""

    members: tuple[str, ...]
    incarnations: tuple[int, ...]
    leaving: tuple[str, ...] = ()


def next_view(
    now: Defined,
    completed: Sequence[str],
    placement: Collection[str],
    alive: Mapping[str, int],
    lost: Collection[str] = (),
) -> Defined | None:
    """The view that should be defined, if another one should, and may.

    `completed` are the members of the last completed view, `placement` is where the group should be, `alive` are
    the present lives of those processes that are believed to be up; `lost` have no disk, and come back when it is
    gone. Only one in which a majority of the last completed view has its say may be defined: anything that was
    visible is with one of them.
    """
    members = tuple(sorted(name for name in placement if name in alive and name not in lost))
    # Whichever life of theirs it is: what was visible is on their disks.
    leaving = tuple(sorted(n for n in completed if n not in placement and n in alive and n not in lost))
    has_a_say = [name for name in completed if (name in members or name in leaving) and name not in lost]
    if not members or len(has_a_say) < majority(len(completed)):
        return None
    found = Defined(members, tuple(alive[name] for name in members), leaving)
    is_same = (found.members, found.incarnations) == (now.members, now.incarnations)
    return None if is_same and all(name in found.leaving for name in now.leaving) else found


def may_complete(members: Sequence[str], have_cut: Collection[str]) -> bool:
    """A majority of the view itself has all that came before it on disk."""
    return sum(1 for name in members if name in have_cut) >= majority(len(members))
