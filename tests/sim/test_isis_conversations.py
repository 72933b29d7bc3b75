"""Scripted conversations between members of ISIS groups: the interleavings that its README argues about.

A script is prose, then lines that begin with `>`: what the director does, or claims with `> so`. Below each line
is what the members say and do in answer, as real machines say it. Messages stand where they arrive; those that are
held stand in parentheses where they are sent. Rows, which say what is on whose disk, are left out unless they are
asked for. `ORDERCAST_REWRITE=1 make test` writes the answers anew; review them as a diff. Claims are never
rewritten.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ordercast.v1.isis_pb2 import (
    Cast,
    CastKey,
    Cut,
    CutSynced,
    EpochFlush,
    Flush,
    Forward,
    GroupTime,
    PartCast,
    PartsCast,
    Resume,
    SetsOrder,
    Stability,
    Submit,
    Tell,
    TellAck,
)
from ordercast.v1.sequencer_pb2 import FetchLog, LogChunk
from tests.unit.isis_host import Company

FOLDER = Path(__file__).parent / "conversations" / "isis"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.txt"))


class Words:
    """Messages as members would say them."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.members: dict[tuple[str, int], list[str]] = {}
        self.casts: dict[tuple[str, int, int, int], str] = {}
        self.of: dict[type, Callable[[Any], str]] = {
            Cast: self._cast,
            SetsOrder: self._order,
            Stability: lambda m: f"on my disk in {m.group}: {self._row(m)}",
            Resume: lambda m: f"of yours in {m.group} I have {m.received}, and places below {m.positions}",
            EpochFlush: lambda m: f"from me nothing below epoch {m.epoch} in {m.group}, behind {m.sent} casts",
            Forward: self._forward,
            Flush: self._flush,
            Cut: self._cut,
            CutSynced: lambda m: f"the cut before view {m.view} of {m.group} is on my disk",
            Submit: lambda m: f"cast {self._id(m.envelope.header.id)} in {m.group}, for its origin",
            PartCast: lambda m: f"{self._id(m.id)} is cast in {m.part.group}",
            PartsCast: self._parts,
            Tell: lambda m: f"for you alone, {m.payload.decode()}",
            TellAck: lambda m: "I have what was for me alone",
            FetchLog: lambda m: f"the log of {m.group} from {m.position}, please",
            LogChunk: lambda m: f"the log of {m.group}: {self._entries(m)}",
        }

    def learn(self, history: Sequence[tuple[Any, ...]]) -> None:
        """Names for the casts that are spoken of."""
        for group, view in self.company.groups.items():
            self.members[(group, view.configuration)] = list(view.replicas)
        for happening in history:
            message = happening[-1]
            cast = message.cast if isinstance(message, Forward) else message
            if isinstance(cast, Cast) and cast.envelope.header.id:
                key = (cast.group, cast.view, cast.key.member, cast.key.number)
                self.casts[key] = self.company.label(cast.envelope)

    def _id(self, id_: bytes) -> str:
        return next(label for label, one in self.company.envelopes.items() if one.header.id == id_)

    def _key(self, group: str, view: int, key: CastKey) -> str:
        name = self.members[(group, view)][key.member]
        return self.casts.get((group, view, key.member, key.number), f"{name}'s cast {key.number}")

    def _keys(self, group: str, view: int, keys: Sequence[CastKey]) -> str:
        return " ".join(self._key(group, view, key) for key in keys) or "nothing"

    def _time(self, time: GroupTime) -> str:
        if not time.counts:
            return f"view {time.view} of {time.group}"
        names = self.members[(time.group, time.view)]
        counts = zip(time.members, time.counts, strict=True)
        return f"{time.group} " + " ".join(f"{names[member]}:{count}" for member, count in counts)

    def _cast(self, cast: Cast) -> str:
        text = f"{self.company.label(cast.envelope)} in {cast.group}{', in total order' if cast.total else ''}"
        behind = [self._time(time) for time in (*cast.times, *cast.carried)]
        text += f", behind {', '.join(dict.fromkeys(behind))}" if behind else ""
        text += f", epoch {cast.epoch}" if cast.epoch else ""
        return text + (f", at place {cast.position}" if cast.HasField("position") else "")

    def _order(self, order: SetsOrder) -> str:
        text = f"the order of {order.group} from {order.first_position}: "
        text += self._keys(order.group, order.view, order.keys)
        holder = self.members[(order.group, order.view)][order.holder]
        return text + (f"; the token is {holder}'s from {order.since} on" if order.turn else "")

    def _row(self, message: Stability) -> str:
        names = self.members[(message.group, message.view)]
        counts = " ".join(f"{name}:{count}" for name, count in zip(names, message.row.counts, strict=True))
        return f"{counts}, places below {message.row.positions}"

    def _forward(self, forward: Forward) -> str:
        if forward.HasField("held"):
            return f"{self._id(forward.held.envelope.header.id)} is open in {forward.held.group}"
        return f"you may lack {self.company.label(forward.cast.envelope)}"

    def _flush(self, flush: Flush) -> str:
        text = f"view {flush.view} of {flush.group} may begin; "
        if flush.behind:
            return text + "I am behind"
        names = self.members[(flush.group, flush.ends)]
        have = " ".join(f"{name}:{count}" for name, count in zip(names, flush.received, strict=True))
        places = zip(flush.positions, flush.keys, strict=True)
        known = " ".join(f"{place}={self._key(flush.group, flush.ends, key)}" for place, key in places)
        return f"{text}I have {have}" + (f", places {known}" if known else "")

    def _cut(self, cut: Cut) -> str:
        rest = self._keys(cut.group, cut.ends, cut.keys)
        return f"view {cut.ends} of {cut.group} ends with {rest} from place {cut.first_position}"

    def _parts(self, message: PartsCast) -> str:
        if not message.HasField("until"):
            return f"{self._id(message.id)} is cast in {' and '.join(part.group for part in message.parts)}"
        if message.HasField("confirmed"):
            where = ", ".join(self._time(time) for time in message.confirmed.times)
            return f"what was open in {message.group} is cast: {where}"
        return f"is anything open in {message.group} up to {self._time(message.until)}?"

    def _entries(self, chunk: LogChunk) -> str:
        names = [self.company.label(entry.envelope) for entry in chunk.entries]
        return " ".join(names) or "nothing more"

    def line(self, kind: str, who: str, *what: Any) -> str:
        match kind:
            case "arrives" if what[0] == who:
                return f"{who}: {self.of[type(what[1])](what[1])}"
            case "arrives":
                return f"{who} -> {what[0]}: {self.of[type(what[1])](what[1])}"
            case "held":
                return f"({who} -> {what[0]}: {self.of[type(what[1])](what[1])})"
            case "delivers":
                return f"{who} delivers {what[1]} in {what[0]}"
            case "shows":
                return f"{who} has {what[1]} in the log of {what[0]}"
            case "receipt":
                return f"{who} gives the receipt for {what[1]} in {what[0]}"
            case "told":
                return f"{who} takes {what[1]} from {what[0]}"
        return f"{who} delivers nothing more in {what[0]} for now"


class Conversation:
    """One script, played."""

    def __init__(self) -> None:
        self._company: Company | None = None
        self._words: Words | None = None
        self.shows_rows = False
        self.commands: dict[str, Callable[..., None]] = {
            r"there are (.+?)(?:, and (n\d(?: n\d)*) besides)?(?: \((.+)\))?": self._begin,
            r"(n\d) casts (\w+) in (\w(?: and \w)*)( in total order)?": self._cast,
            r"(n\d) casts (\w+) in (\w) for a client that has read (\w) at (n\d)": self._cast_for,
            r"(n\d) tells (n\d) (\w+)": lambda source, to, payload: self.company.tell_one(source, to, payload),
            r"what (n\d) says to (.+) waits": lambda source, to: self.company.hold(source, *to.split()),
            r"what (n\d) said to (.+) arrives": lambda source, to: self.company.release(source, *to.split()),
            r"the connection of (n\d) and (n\d) breaks": self._reconnect,
            r"the disk of (n\d) is slow": lambda name: self.company.slow_disk(name),
            r"the disk of (n\d) syncs": lambda name: self.company.sync(name),
            r"(.+) crash(?:es)?": lambda names: self.company.crash(*names.split()),
            r"(.+) restarts?": lambda names: self.company.restart(*names.split()),
            r"view \d of (\w) is defined: (.+?)(?:; (n\d) leaves)?(?:; told to (.+))?": self._define,
            r"view \d of (\w) is complete(?:; told to (.+))?": self._complete,
            r"view \d of (\w) is installed": lambda group: self.company.installed(group),
            r"(n\d(?: n\d)*) hears? of that": lambda names: self.company.tell(*names.split()),
            r"some time passes": lambda: self.company.wait(),
            r"rows are told": self._show_rows,
            r"so (n\d(?: n\d)*) delivered (.+)": self._so_delivered,
            r"so the log of (\w) is (.+) at (n\d(?: n\d)*)": self._so_log,
            r"so (n\d) keeps (\d+) casts": self._so_keeps,
            r"so view (\d) of (\w) is at (n\d(?: n\d)*)": self._so_view,
        }

    @property
    def company(self) -> Company:
        assert self._company is not None, "first say who there is"
        return self._company

    def play(self, text: str) -> Iterator[str]:
        """The script again, with what its lines come to."""
        for line in text.splitlines():
            if line.startswith("    "):
                continue
            yield line
            if line.startswith("> "):
                self._perform(line.removeprefix("> "))
                yield from self._answers()

    def _perform(self, command: str) -> None:
        for pattern, perform in self.commands.items():
            match = re.fullmatch(pattern, command)
            if match is not None:
                perform(*match.groups())
                return
        raise AssertionError(f"nobody knows how to do this: {command}")

    def _answers(self) -> Iterator[str]:
        history, self.company.history = self.company.history, []
        assert self._words is not None
        self._words.learn(history)
        for kind, *happening in history:
            if self.shows_rows or not isinstance(happening[-1], Stability):
                yield f"    {self._words.line(kind, *happening)}"

    # ------------------------------------------------------------------------------------------- doing

    def _begin(self, groups: str, spare: str | None, settings: str | None) -> None:
        found = dict(one.split(" of ") for one in groups.split(", "))
        chosen: dict[str, Any] = dict(one.split("=") for one in (settings or "").split())
        for name in chosen.keys() & {"order_batch", "token_window"}:
            chosen[name] = int(chosen[name])
        self._company = Company(found, spare=spare or "", **chosen)
        self._words = Words(self._company)

    def _cast(self, through: str, label: str, groups: str, total: str | None) -> None:
        self.company.cast(through, groups.replace(" and", ""), label, total=bool(total))

    def _cast_for(self, through: str, label: str, group: str, read: str, at: str) -> None:
        self.company.cast(through, group, label, seen=self.company.seen_at(at, read))

    def _reconnect(self, one: str, other: str) -> None:
        self.company.held.pop((one, other), None)
        self.company.held.pop((other, one), None)
        self.company.reconnect(one, other)

    def _define(self, group: str, members: str, leaves: str | None, told: str | None) -> None:
        self.company.define(group, members, leaving=leaves or "", told=told or "all")

    def _complete(self, group: str, told: str | None) -> None:
        self.company.complete(group, told=told or "all")

    def _show_rows(self) -> None:
        self.shows_rows = True

    # ---------------------------------------------------------------------------------------- claiming

    def _so_delivered(self, names: str, expected: str) -> None:
        for name in names.split():
            assert self.company.live(name) == expected.replace("nothing", ""), name

    def _so_log(self, group: str, expected: str, names: str) -> None:
        for name in names.split():
            assert self.company.log(name, group) == expected.replace("nothing", ""), name

    def _so_keeps(self, name: str, count: str) -> None:
        assert self.company.machine(name).buffers()["casts"] == int(count)

    def _so_view(self, view: str, group: str, names: str) -> None:
        for name in names.split():
            assert self.company.era(name, group).view == int(view), name


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_conversation_is_as_written(script: str) -> None:
    path = FOLDER / f"{script}.txt"
    text = path.read_text()
    played = "\n".join(Conversation().play(text)) + "\n"
    if os.environ.get("ORDERCAST_REWRITE"):
        path.write_text(played)
    assert played == path.read_text()


def test_there_are_conversations() -> None:
    assert len(SCRIPTS) > 10
