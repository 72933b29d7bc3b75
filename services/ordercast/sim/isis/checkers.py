"""What virtual synchrony promises beyond what follows from ISIS's traits (sim/checkers/by_trait.py).

It is checked from what processes did and never from their stamps. Causality is reckoned here anew, by casts: a
cast comes after everything that its process had sent or delivered, and its client had seen, when it was submitted.
Sets of casts are bits of one number.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ordercast.core.cells import cells_of
from ordercast.core.machine import Deliver, Observe
from ordercast.protocols.isis.stamps import stamp_in
from ordercast.sim.board import Board, MessageKey
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.isis.membership import ViewMembership
from ordercast.sim.world import World
from ordercast.v1.common_pb2 import Batch, Envelope
from ordercast.v1.isis_pb2 import CastStamp
from ordercast.v1.sequencer_pb2 import LogEntry

#: (group, view, the caster's place, its number)
CastName = tuple[str, int, int, int]


def cast_name(group: str, stamp: CastStamp) -> CastName:
    return (group, stamp.view, stamp.key.member, stamp.key.number)


def text_of(name: CastName) -> str:
    return f"{name[0]}/{name[1]}:{name[2]}.{name[3]}"


@dataclass(slots=True)
class Life:
    """One life of a process, as checkers see it."""

    name: str
    #: Casts sent or delivered here, and all that precedes them.
    knows: int = 0
    sent: int = 0
    delivered: int = 0
    #: All that precedes what was delivered.
    past: int = 0
    #: By group: views installed, latest last; and casts delivered in the latest.
    views: dict[str, list[int]] = field(default_factory=dict)
    in_view: dict[str, int] = field(default_factory=dict)
    #: ABCASTs of the latest view, in the order of delivery.
    totals: dict[str, list[CastName]] = field(default_factory=dict)


class Checker:
    def __init__(
        self,
        world: World,
        membership: ViewMembership,
        board: Board,
        casters: Iterable[str] = (),
        *,
        may_lose: bool = False,
    ) -> None:
        """Where clients read what is in no log yet, what they answer may be lost, and their answers are not.

        `casters` are never refused anything. Other producers may be: they begin again at another gateway, and
        repeat what is refused.
        """
        self.may_lose = may_lose
        self.world = world
        self.casters = {name.encode(): None for name in casters}
        self.membership = membership
        self.board = board
        self.bits: dict[CastName, int] = {}
        self.names: list[CastName] = []
        self.past: dict[CastName, int] = {}
        self.is_total: dict[CastName, bool] = {}
        self.casts_in: dict[tuple[str, int], int] = {}
        self.lives: dict[tuple[str, int], Life] = {}
        #: What precedes a cast when it is submitted; by process, its life, envelope and group.
        self.submitted: dict[tuple[str, int, bytes, str], int] = {}
        #: What precedes all in a group's log; casts that are in a log; and all casts of an envelope.
        self.past_in: dict[str, int] = {}
        self.logged = 0
        self.casts_of: dict[bytes, int] = {}
        #: What the clients had seen whose messages are in an envelope; the envelopes that a message went in, more
        #: than one if it was repeated; and the casts of an envelope in a group, more than one if that was.
        self.seen_before: dict[bytes, int] = {}
        self.envelopes_of: dict[MessageKey, list[bytes]] = {}
        self.casts_in_group: dict[tuple[bytes, str], list[CastName]] = {}
        #: How each view ended, as its first survivor saw it: casts, and ABCASTs in order.
        self.endings: dict[tuple[str, int], tuple[int, list[CastName], str]] = {}
        self.members: dict[tuple[str, int], tuple[str, ...]] = {}
        #: The one log of each group: envelope ids and casts.
        self.logs: dict[str, list[tuple[bytes, CastName]]] = {}

    def life_of(self, process: str) -> Life:
        key = (process, self.world.processes[process].incarnation)
        if key not in self.lives:
            self.lives[key] = Life(process)
        return self.lives[key]

    def fail(self, what: str, explanation: str) -> None:
        raise Violation(what, explanation)

    # ---------------------------------------------------------------------------------------------- events

    def on_observe(self, process: str, effect: Observe) -> None:
        life = self.life_of(process)
        if effect.stage == "submitted":
            incarnation = self.world.processes[process].incarnation
            before = life.knows | self.seen_before[effect.id]
            self.submitted[(process, incarnation, effect.id, effect.detail)] = before
        elif effect.stage in ("cast", "part cast"):
            group, view, member, number = effect.detail.split()
            name = (group, int(view), int(member), int(number))
            self._cast(process, life, effect.id, name, is_part=effect.stage == "part cast")
        elif effect.stage == "installed":
            group, view = effect.detail.split()
            self._installed(process, life, group, int(view))

    def on_interrupted(self, process: str, group: str) -> None:
        """It is owed nothing any more that was cast there, and what it knows of its last view may be lost."""
        life = self.life_of(process)
        views = life.views.pop(group, [])
        if views:
            life.knows &= ~self.casts_in.get((group, views[-1]), 0)

    def on_submit(self, envelope: Envelope) -> None:
        """It was submitted somewhere, perhaps not for the first time."""
        id_ = envelope.header.id
        if id_ in self.seen_before:
            return
        keys = [self.board.by_payload[message.payload] for message in Batch.FromString(envelope.body).messages]
        seen = 0
        for key in keys:
            sent = self.board.sent[key]
            for name in sent.shown:
                assert isinstance(name, tuple)
                seen |= self.bits[name] | self.past[name]
            for other in sent.by_receipt:
                seen |= self._seen_with(other)
            self.envelopes_of.setdefault(key, []).append(id_)
        self.seen_before[id_] = seen

    def _seen_with(self, key: MessageKey) -> int:
        """What whoever has a receipt of the message has seen at least.

        In each of its groups it was cast by then, perhaps more than once, and the receipt is about one of those.
        """
        seen = 0
        for group in cells_of(key[1]):
            casts = [
                self.bits[name] | self.past[name]
                for id_ in self.envelopes_of.get(key, ())
                for name in self.casts_in_group.get((id_, group), ())
            ]
            common = casts[0] if casts else 0
            for one in casts[1:]:
                common &= one
            seen |= common
        return seen

    def _names_in(self, casts: int) -> list[CastName]:
        found = []
        while casts:
            low = casts & -casts
            found.append(self.names[low.bit_length() - 1])
            casts ^= low
        return found

    def _cast(self, process: str, life: Life, id_: bytes, name: CastName, *, is_part: bool) -> None:
        if name in self.bits:
            self.fail("incarnation", f"{process} casts {text_of(name)} a second time")
        bit = self.bits[name] = 1 << len(self.names)
        self.names.append(name)
        incarnation = self.world.processes[process].incarnation
        # Parts that were handed on come behind what their client has seen; what happened here is none of their
        # past.
        past = self.seen_before[id_]
        if not is_part:
            past = self.submitted[(process, incarnation, id_, name[0])]
        # A caster's casts in one group follow each other.
        if name[3] > 1:
            group, view, member, number = name
            one_before = (group, view, member, number - 1)
            if one_before not in self.bits:
                self.fail("integrity", f"{process} casts {text_of(name)}, and did not cast {text_of(one_before)}")
            past |= self.bits[one_before] | self.past[one_before]
        self.past[name] = past
        self.casts_in[name[:2]] = self.casts_in.get(name[:2], 0) | bit
        self.casts_of[id_] = self.casts_of.get(id_, 0) | bit
        self.casts_in_group.setdefault((id_, name[0]), []).append(name)
        life.sent |= bit
        life.knows |= bit | past

    def on_deliver(self, process: str, effect: Deliver) -> None:
        if effect.final:
            return
        life = self.life_of(process)
        stamp = stamp_in(effect.entry)
        name = cast_name(effect.group, stamp)
        if name not in self.bits:
            self.fail("integrity", f"{process} delivers {text_of(name)}, which nobody cast")
        bit, past = self.bits[name], self.past[name]
        views = life.views.get(effect.group, [])
        if not views or views[-1] != stamp.view:
            now = views[-1] if views else "none"
            self.fail("view", f"{process} delivers {text_of(name)} in view {now}")
        if life.delivered & bit:
            self.fail("exactly-once", f"{process} delivers {text_of(name)} twice")
        if life.past & bit:
            self.fail("causality", f"{process} delivers {text_of(name)} after what comes after it")
        for other in self._names_in(past & ~life.delivered):
            if other[1] in life.views.get(other[0], []) and not (self.may_lose and self._is_lost(other)):
                self.fail("causality", f"{process} delivers {text_of(name)} without {text_of(other)}")
        life.delivered |= bit
        life.past |= past
        life.knows |= bit | past
        life.in_view[effect.group] = life.in_view.get(effect.group, 0) | bit
        if stamp.total:
            life.totals.setdefault(effect.group, []).append(name)

    def _is_lost(self, name: CastName) -> bool:
        """The view ended, and nobody who went on had it."""
        ending = self.endings.get(name[:2])
        return ending is not None and not ending[0] & self.bits[name]

    def _installed(self, process: str, life: Life, group: str, view: int) -> None:
        views = life.views.setdefault(group, [])
        completed = self.membership.completed[group]
        if view not in completed:
            self.fail("views", f"{process} installs view {view} of {group}, which is not complete")
        if views and view <= views[-1]:
            self.fail("views", f"{process} installs view {view} of {group} after {views[-1]}")
        if views:
            between = [number for number in completed if views[-1] < number < view]
            if not between:
                self._check_ending(process, life, group, views[-1])
            else:
                # It was left out, or missed a view altogether, and is back: what it missed is in its log.
                views.clear()
        views.append(view)
        life.in_view[group], life.totals[group] = 0, []

    def _check_ending(self, process: str, life: Life, group: str, view: int) -> None:
        """View synchrony: whoever goes on has delivered the same in the view before, ABCASTs in the same order."""
        mine = (life.in_view.get(group, 0), list(life.totals.get(group, [])), process)
        first = self.endings.setdefault((group, view), mine)
        if first[0] != mine[0]:
            other = first[2]
            for name in self._names_in(first[0] ^ mine[0]):
                has, lacks = (other, process) if first[0] & self.bits[name] else (process, other)
                self.fail("view synchrony", f"{has} delivered {text_of(name)} in that view, and {lacks} did not")
        if first[1] != mine[1]:
            self.fail("total order", f"{process} and {first[2]} ended view {view} of {group} in two orders")

    # ----------------------------------------------------------------------------------------- point to point

    def on_tell(self, process: str) -> bytes:
        """It comes after all that its sender sent and delivered; the payload by which it is known again."""
        life = self.life_of(process)
        name = ("", 0, 0, len(self.names))
        bit = self.bits[name] = 1 << len(self.names)
        self.names.append(name)
        self.past[name] = life.knows
        life.knows |= bit
        return str(name[3]).encode()

    def on_told(self, process: str, source: str, payload: bytes) -> None:
        life = self.life_of(process)
        name = ("", 0, 0, int(payload))
        bit, past = self.bits[name], self.past[name]
        if life.past & bit:
            self.fail("causality", f"{process} is told by {source} after what comes after that")
        for other in self._names_in(past & ~life.delivered):
            if other[1] in life.views.get(other[0], []):
                self.fail("causality", f"{process} is told by {source} without {text_of(other)}")
        life.knows |= bit | past
        life.past |= past

    # ------------------------------------------------------------------------------------------------ logs

    def on_commit(self, process: str, group: str, position: int, entry: LogEntry) -> None:
        log = self.logs.setdefault(group, [])
        id_ = entry.envelope.header.id
        name = cast_name(group, stamp_in(entry))
        if position < len(log):
            return  # the same, as the log's own checker has seen to
        if name not in self.bits:
            self.fail("integrity", f"{text_of(name)} is in the log, and nobody cast it")
        earlier = 0
        for _, cast in log:
            earlier |= self.bits[cast]
        group_past = self.past[name] & self._all_of(group)
        if log and name[1] < log[-1][1][1]:
            self.fail("log order", f"{text_of(name)} is in the log of {group} behind a later view's")
        for missing in self._names_in(group_past & ~earlier):
            # What was read before it was in a log may have gone with its view. As views rise in a log, it is gone
            # for good; what was said after it is not.
            if not (self.may_lose and missing[1] < name[1]):
                self.fail("log order", f"{text_of(name)} is in the log of {group} before {text_of(missing)}")
        if len(entry.envelope.header.destinations) > 1:
            self._check_parts(group, id_, name)
        log.append((id_, name))
        self.logged |= self.bits[name]
        self.past_in[group] = self.past_in.get(group, 0) | self.past[name]
        for range_, outcome in zip(entry.envelope.header.ranges, entry.outcomes, strict=True):
            if outcome.refusal and range_.producer in self.casters:
                self.fail("fifo", f"{range_.producer!r} {range_.first_sequence} was refused in {group}")

    def _check_parts(self, group: str, id_: bytes, name: CastName) -> None:
        """What comes after one part of a message to several groups comes after all of it, in every log.

        What was read before it was in a log may be lost, and what answers it is not.
        """
        if any(other == id_ for other, _ in self.logs[group]):
            return
        parts = self.casts_of[id_] & self.logged if self.may_lose else self.casts_of[id_]
        if self.past_in.get(group, 0) & parts:
            self.fail("causality", f"{text_of(name)} is in the log of {group} behind what comes after its message")

    def _all_of(self, group: str) -> int:
        return sum(bits for (name, _), bits in self.casts_in.items() if name == group)

    # ---------------------------------------------------------------------------------------------- the end

    def check_end(self) -> None:
        self._check_present_views()
        self._check_buffers()

    def _check_present_views(self) -> None:
        """In a view that has not ended: all that was cast is delivered everywhere, ABCASTs in one order."""
        for name, group in self.membership.groups.items():
            lives = [self.life_of(member) for member in group.replicas if self.world.processes[member].up]
            for life in lives:
                if life.in_view.get(name, 0) != lives[0].in_view.get(name, 0):
                    self.fail("atomicity", f"{life.name} and {lives[0].name} differ in {name}")
                if life.totals.get(name, []) != lives[0].totals.get(name, []):
                    self.fail("total order", f"{life.name} and {lives[0].name} order {name} differently")

    def _check_buffers(self) -> None:
        for name, process in self.world.processes.items():
            if process.up and "isis" in process.slots:
                buffers = process.slots["isis"].machine.buffers()
                for what, size in buffers.items():
                    if size > (len(self.membership.groups) if what == "times" else 0):
                        self.fail("bounded", f"{name} still has {size} {what}")
