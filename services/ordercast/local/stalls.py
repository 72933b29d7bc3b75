"""The longest times in which nothing was acknowledged, and what was waited for.

That nothing comes while no majority of some group is there says little. That nothing comes while majorities of all
groups are there says that somebody waits for what need not be waited for, or too long: so there are two of them.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from ordercast.local.configurations import can_work, cluster_of, is_settled, text_of
from ordercast.local.load import Load
from ordercast.v1.membership_pb2 import Group

LOOK_S = 0.2
#: How often the cluster is asked what it waits for. Shorter ones are what a machine with much to do takes.
ASK_S = 1.0
SETS_MAX = 5


class Longest:
    def __init__(self) -> None:
        self.s_max = 0.0
        #: When it ended, so far; on the clock of those who look.
        self.ended = 0.0
        self.waited_for: list[str] = []
        #: Since when nothing is in the way.
        self._since: float | None = None

    def look(self, now: float, last_receipt: float, *, may_wait: bool) -> float:
        """For how long it has lasted now. It may wait if nobody publishes, or perhaps if somebody is missing."""
        if may_wait:
            self._since = None
            return 0.0
        if self._since is None:
            self._since = now
        return now - max(self._since, last_receipt)

    def note(self, now: float, lasts_s: float, waited_for: Sequence[str]) -> None:
        if lasts_s > self.s_max:
            self.s_max, self.ended, self.waited_for = lasts_s, now, list(waited_for)


class Stalls:
    def __init__(self) -> None:
        self.any = Longest()
        #: Though majorities of all groups were there.
        self.with_majorities = Longest()

    def look(self, now: float, last_receipt: float, *, is_idle: bool, can_work: bool) -> tuple[float, float]:
        """For how long each of them lasts now."""
        return (
            self.any.look(now, last_receipt, may_wait=is_idle),
            self.with_majorities.look(now, last_receipt, may_wait=is_idle or not can_work),
        )

    def are_longer(self, any_s: float, stalled_s: float) -> bool:
        """Whether one of them is worth asking about."""
        return any_s > max(ASK_S, self.any.s_max) or stalled_s > max(ASK_S, self.with_majorities.s_max)


def waited_for(load: Load, groups: Sequence[Group], away: Collection[str], *, answers: bool) -> list[str]:
    """Publishes by where they go; groups, if something is not as it should be; and who is away."""
    sets = Counter(",".join(sent.groups) for sent in load.waiting.values())
    found = [f"{count} to {names}" for names, count in sets.most_common(SETS_MAX)]
    found += [text_of(group) for group in groups if not is_settled(group)]
    found += [f"{group.name} has no majority" for group in groups if not can_work(group, away)]
    if away:
        found.append(f"away: {', '.join(sorted(away))}")
    if not answers:
        found.append("no gateway says how the groups are")
    return found


async def watch(stalls: Stalls, load: Load, away: Callable[[], Collection[str]]) -> None:
    """Until it is cancelled."""
    groups: list[Group] = []
    any_s = stalled_s = 0.0
    while True:
        asked_at = time.monotonic()
        cluster = await asyncio.to_thread(cluster_of, load.gateways)
        groups = list(cluster.groups) if cluster is not None else groups
        texts = waited_for(load, groups, away(), answers=cluster is not None)
        stalls.any.note(asked_at, any_s, texts)
        if can_all_work(groups, away()):
            stalls.with_majorities.note(asked_at, stalled_s, texts)
        any_s = stalled_s = 0.0
        while time.monotonic() < asked_at + ASK_S or not stalls.are_longer(any_s, stalled_s):
            await asyncio.sleep(LOOK_S)
            any_s, stalled_s = stalls.look(
                time.monotonic(),
                load.last_receipt,
                is_idle=not load.waiting,
                can_work=can_all_work(groups, away()),
            )


def can_all_work(groups: Sequence[Group], away: Collection[str]) -> bool:
    return bool(groups) and all(can_work(group, away) for group in groups)
