"""Members of the replicated log that lose their disks: the schedules that make each part of the rule necessary.

Random runs have lost disks too (paxos_log_disks.py), but meet most of these too rarely. Each schedule is played
with the rule as it is, where it ends in agreement, and with a mistake in it, where two members apply different
values or one of them sees a slot decided twice.
"""

from collections.abc import Callable
from typing import Any

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.core.machine import ChannelReset, Effect, Event, Hand, Persist, Receive, Send, Start, TimerFired
from ordercast.protocols.paxos import log_admission
from ordercast.protocols.paxos.log import TIMER, Append, LogApplied, LogReplica, MayVote
from ordercast.protocols.paxos.log_admission import Admission
from ordercast.protocols.paxos.log_state import LogState
from ordercast.v1.consensus_pb2 import LOG_STANDING_EMPTY, LOG_STANDING_FOUNDER, LOG_STANDING_READMITTED
from tests.sim.paxos_log import violation_of
from tests.sim.paxos_log_disks import join_of


class Disagreement(Exception):  # noqa: N818 (it names what happened)
    pass


class Table:
    """Members, their disks and the letters between them, which arrive when the story says so."""

    def __init__(self, members: str) -> None:
        self.members = tuple(members)
        self.machines: dict[str, LogReplica] = {}
        self.disks: dict[str, tuple[bytes, dict[bytes, bytes]]] = {}
        self.lives: dict[str, int] = {}
        self.letters: dict[tuple[str, str], list[tuple[int, Any]]] = {}
        self.applied: dict[int, tuple[str, bytes | None]] = {}
        self.now = 0.0
        self.incarnations = 0
        for name in self.members:
            self.start(name, f"{name}/1")
        self.connect()
        self.quiet()
        assert all(self.votes(name) for name in self.members)

    def votes(self, name: str) -> bool:
        return self.machines[name].state.votes

    def leads(self, name: str) -> bool:
        return self.machines[name].reign is not None

    # ------------------------------------------------------------------------------------------- members

    def start(self, name: str, disk: str) -> None:
        self.incarnations += 1
        self.lives[name] = self.incarnations
        self.disks[name] = (disk.encode(), {})
        self.machines[name] = LogReplica(name, self.members, "client", disk=disk.encode())
        self.step(name, Start(self.now, 0.0, self.incarnations, []))

    def lose_disk(self, name: str) -> None:
        """The process starts again at once, with nothing; what was on its way from it or to it is lost."""
        for pair in list(self.letters):
            if name in pair:
                del self.letters[pair]
        number = int(self.disks[name][0].split(b"/")[1])
        self.start(name, f"{name}/{number + 1}")
        for other in self.members:
            if other != name:
                self.step(name, ChannelReset(self.now, 0.0, other, self.lives[other]))

    def connect(self) -> None:
        for name in self.members:
            for other in self.members:
                if other != name:
                    self.step(name, ChannelReset(self.now, 0.0, other, self.lives[other]))

    def step(self, name: str, event: Event) -> None:
        for effect in self.machines[name].step(event):
            self._perform(name, effect)

    def _perform(self, name: str, effect: Effect) -> None:
        disk = self.disks[name][1]
        match effect:
            case Persist(records=records):
                for key, value in records:
                    disk.pop(key, None) if value is None else disk.update({key: value})
            case Send(to=to, message=message):
                for peer in to:
                    copy = type(message).FromString(message.SerializeToString())
                    self.letters.setdefault((name, peer), []).append((self.lives[name], copy))
            case Hand(event=LogApplied(slot=slot, value=value)):
                who, before = self.applied.setdefault(slot, (name, value))
                if before != value:
                    raise Disagreement(f"slot {slot}: {name} applies {value!r}, and {who} {before!r}")
                if join_of(value) == self.disks[name][0]:
                    self.step(name, MayVote(self.now, 0.0, slot + 1))

    # ------------------------------------------------------------------------------------------- the story

    def between(self, name: str, *others: str) -> None:
        """All letters between this member and each of the others, and the answers to them, and so on."""
        pairs = [pair for other in others for pair in ((name, other), (other, name))]
        while any(self.letters.get(pair) for pair in pairs):
            for source, to in pairs:
                self.deliver(source, to)

    def deliver(self, source: str, to: str) -> None:
        for incarnation, message in self.letters.pop((source, to), []):
            self.step(to, Receive(self.now, 0.0, source, incarnation, message))

    def quiet(self) -> None:
        for name in self.members:
            self.between(name, *(other for other in self.members if other != name))
        if any(self.letters.values()):
            self.quiet()

    def campaign(self, name: str) -> None:
        """Its patience is over; nobody else looks at the clock."""
        while self.machines[name].candidacy is None:
            self.tick(name)

    def tick(self, name: str) -> None:
        self.now += 10.0
        self.step(name, TimerFired(self.now, 0.0, TIMER, 0))

    def append(self, name: str, value: bytes) -> None:
        self.step(name, Append(self.now, 0.0, value, value))


# ------------------------------------------------------------------------------------------------- schedules


def forgotten_promise(answering: str, *, promises_before: bool = False) -> Callable[[], None]:
    """e promised b a round, which b still collects promises for, and forgets it; d leads in a lower one."""

    def play() -> None:
        table = Table("abcde")
        table.campaign("d")
        table.quiet()
        assert table.leads("d")
        table.campaign("b")
        table.between("b", "e")
        table.lose_disk("e")
        table.append("d", b"join e/2")
        table.between("d", "a", "c")
        if promises_before:
            table.between("b", "c")
        table.between("e", "d")
        table.between("e", *answering)
        table.append("d", b"x")
        table.between("d", "a", "e")
        table.between("b", "c")
        table.append("b", b"y")
        table.between("b", "c", "a")
        table.quiet()

    return play


def forgotten_vote() -> None:
    """e's new disk is registered while it still votes with the old one, and x is decided with such a vote."""
    table = Table("abcde")
    table.campaign("d")
    table.quiet()
    table.append("d", b"join e/2")
    table.between("d", "a", "b", "c")
    table.append("d", b"x")
    table.between("d", "c", "e")
    assert table.applied[1] == ("d", b"x")
    table.lose_disk("e")
    # b, which knows of no more than the registration, is a candidate with a's promise.
    table.campaign("b")
    table.between("b", "a", "e")
    table.between("e", "a")
    # c's answer arrives, and what c would tell of slot 1 does not yet.
    table.deliver("e", "c")
    table.deliver("c", "e")
    table.tick("b")
    table.between("b", "e")
    table.append("b", b"y")
    table.between("b", "a", "e")
    table.quiet()


def forgotten_before_the_first_vote() -> None:
    """Everyone is empty, and b leads with c's promise, when c loses its disk."""
    table = Table("abc")
    table.campaign("b")
    table.between("b", "c")
    assert table.leads("b")
    table.lose_disk("c")
    table.between("c", "a", "b")
    table.campaign("a")
    table.between("a", "c")
    table.append("a", b"x")
    table.deliver("a", "c")
    table.deliver("c", "a")
    table.append("b", b"y")
    table.between("b", "c")
    table.quiet()


def forgotten_majority() -> None:
    """The plainest one: a and c decide x; b and c, who do not know, decide y."""
    table = Table("abc")
    table.campaign("a")
    table.quiet()
    table.append("a", b"x")
    table.between("a", "c")
    table.lose_disk("c")
    table.campaign("b")
    table.between("b", "c")
    table.append("b", b"y")
    table.between("b", "c")
    table.quiet()


# -------------------------------------------------------------------------------------------------- mistakes

_begin_life, _proceed = Admission._begin_life, Admission.proceed


def vote_at_once(self: Admission) -> None:
    if self.member.state.standing == LOG_STANDING_EMPTY:
        self.member.state.stand(LOG_STANDING_FOUNDER)
        self.member.persist()


def vote_when_registered(self: Admission, life: int) -> None:
    if not self.member.state.votes:
        self.member.state.note_life(self.member.process, life)
        self.member.state.stand(LOG_STANDING_READMITTED, life)
        self.member.persist()


def count_every_life(self: Admission, source: str, message: Any) -> bool:
    return False


def keep_what_was_counted(self: Admission, name: str, life: int) -> None:
    self.member.state.note_life(name, life)


def promise_nothing(self: Admission) -> None:
    for answer in self.answers.values():
        answer.ClearField("promised")
    _proceed(self)


def wait_for_no_slot(self: Admission) -> None:
    for answer in self.answers.values():
        answer.unvoted = 0
    _proceed(self)


def one_is_enough(count: int) -> int:
    return 1


def vouch_for_everyone(self: LogState, member: str, disk: bytes) -> bool:
    return True


MISTAKES = [
    (forgotten_majority, Admission, "on_start", vote_at_once),
    (forgotten_before_the_first_vote, LogState, "meet", vouch_for_everyone),
    (forgotten_promise("acd"), Admission, "on_may_vote", vote_when_registered),
    (forgotten_promise("acd"), Admission, "is_over", count_every_life),
    (forgotten_promise("acd"), Admission, "_begin_life", keep_what_was_counted),
    (forgotten_promise("a"), log_admission, "majority", one_is_enough),
    (forgotten_promise("acd", promises_before=True), Admission, "proceed", promise_nothing),
    (forgotten_vote, Admission, "proceed", wait_for_no_slot),
]


@pytest.mark.parametrize(
    "play",
    [
        forgotten_majority,
        forgotten_before_the_first_vote,
        forgotten_promise("acd"),
        forgotten_promise("a"),
        forgotten_promise("acd", promises_before=True),
        forgotten_vote,
    ],
)
def test_members_agree_whatever_one_of_them_forgot(play: Callable[[], None]) -> None:
    play()


@pytest.mark.parametrize(("play", "owner", "name", "mistake"), MISTAKES, ids=lambda value: "")
def test_without_a_part_of_the_rule_they_do_not(
    play: Callable[[], None],
    owner: Any,
    name: str,
    mistake: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner, name, mistake)
    with pytest.raises((Disagreement, InvariantBroken)):
        play()


@pytest.mark.parametrize(
    ("owner", "name", "mistake"),
    [(Admission, "on_start", vote_at_once), (LogState, "meet", vouch_for_everyone)],
    ids=lambda value: "",
)
def test_random_runs_notice_a_member_that_votes_with_an_empty_disk(
    owner: Any, name: str, mistake: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, mistake)
    assert any(violation_of(seed) for seed in range(400))
