"""Who may ask for a group's log, who may send it, and whom to ask.

Our view says so, and nobody else: a log that somebody sends is written to our disk as it comes. A sender whose
view is ahead of ours, or behind, makes no mistake. It is refused with `OtherConfiguration`, and asks again.
"""

from ordercast.core.view import Group, OtherConfiguration


def givers(group: Group) -> tuple[str, ...]:
    """Those that have the log: members of this configuration or view, and of the one before until that is over."""
    return (*group.replicas, *group.former_replicas, *group.leaving)


def askers(group: Group) -> tuple[str, ...]:
    """Those that may need it: the same, and those that are to be members."""
    return (*givers(group), *group.learners)


def check_asks(group: Group, source: str) -> None:
    _check(group, source, askers(group))


def check_gives(group: Group, source: str) -> None:
    _check(group, source, givers(group))


def _check(group: Group, source: str, names: tuple[str, ...]) -> None:
    if source not in names:
        raise OtherConfiguration(group.name, f"{source} has no part in {group.name!r}")


def sources(group: Group, process: str) -> list[str]:
    """Whom a process may ask for the log: members, now or before, that have not lost what they stored."""
    names = dict.fromkeys([*group.replicas, *group.former_replicas])
    return [name for name in names if name != process and name not in group.lost]
