"""A leaf: everybody who receives by gossip. Gateways and embedded leaves are, and beside them roots and
broadcasters.

Views are in views.py, rumours in rumours.py, the order of delivery in delivery.py, and what is asked for in
recovery.py. This machine puts them together: it keeps its place in the subdivision, gossips, hands over, and
answers from what it still has. It writes nothing to the disk: whoever starts again joins again, at the roots'
head.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ordercast.core.machine import ChannelReset, Effect, Event, Hand, Receive, Send, SetTimer, Start, TimerFired
from ordercast.protocols.apbcast.address import Address, common_level
from ordercast.protocols.apbcast.delivery import Interested, delivery_of
from ordercast.protocols.apbcast.dice import Dice
from ordercast.protocols.apbcast.events import ROOT, Asked, Given, Handed, Quit, Skipped
from ordercast.protocols.apbcast.recovery import RANGE_MAX, Recovery
from ordercast.protocols.apbcast.rumours import Rumours, Told
from ordercast.protocols.apbcast.settings import Leaves, Settings
from ordercast.protocols.apbcast.views import Member, Views
from ordercast.v1.apbcast_pb2 import (
    AskHead,
    AskMissed,
    Head,
    JoinGossip,
    JoinReply,
    Missed,
    Neighbour,
    Numbered,
    Rumour,
    RumourGossip,
    ViewUpdate,
)

GOSSIP, UPDATE = "gossip", "update"
#: One update in so many also asks somebody to join.
ASK_AGAIN = 16


class Leaf:
    def __init__(
        self,
        process: str,
        address: Address,
        settings: Settings,
        contacts: Sequence[str],
        *,
        interest: Sequence[str] = (),
        is_root: bool = False,
        from_start: bool = False,
    ) -> None:
        """`contacts` are processes to join through, and roots to ask for what is missing.

        It begins at the head that it hears of first; or `from_start`, with all that was ever said.
        """
        self.process = process
        self.settings = settings
        self.contacts = tuple(contacts)
        self.interest = tuple(interest)
        self.is_root = is_root
        self.incarnation = 0
        self.now = 0.0
        self.views = Views(process, address, settings.representatives, interest)
        self.rumours = Rumours(settings, self.views.size)
        self.delivery = delivery_of(settings, interest)
        self.recovery = Recovery(settings)
        #: The last messages that were handed over, for whoever asks: numbers rise, and are contiguous for exact
        #: leaves.
        self.cache: deque[Numbered] = deque(maxlen=settings.cache)
        #: Numbers below it are given, as far as anybody has said.
        self.head = 0
        self.has_begun = from_start
        self.connected: dict[str, int] = {}
        self.leaves = False
        #: Numbers of messages that went by here and are not wanted, the latest ones.
        self._passed: dict[int, None] = {}
        self._joins = 0
        self._targets: dict[tuple[int, tuple[str, ...]], list[Address]] = {}
        self.out: list[Effect] = []
        self._handlers: dict[type, Callable[[Receive, Any], None]] = {
            ViewUpdate: self._on_update,
            JoinGossip: self._on_join,
            JoinReply: self._on_join_reply,
            RumourGossip: self._on_gossip,
            AskMissed: self._on_ask,
            Missed: self._on_missed,
            AskHead: self._on_ask_head,
            Head: self._on_head,
        }

    @property
    def handles(self) -> Sequence[type]:
        return tuple(self._handlers)

    @property
    def is_exact(self) -> bool:
        return self.settings.leaves is Leaves.EXACT and not self.interest

    # --------------------------------------------------------------------------------------------------
    # stepping

    def step(self, event: Event) -> list[Effect]:
        self.now = event.now
        self.out = []
        match event:
            case Receive():
                self._handlers[type(event.message)](event, event.message)
            case TimerFired():
                self._on_timer(event)
            case Given():
                self._on_given(event)
            case ChannelReset():
                self.connected[event.peer] = event.incarnation
            case Quit():
                self._leave()
            case Start():
                self.incarnation = event.incarnation
                self.views.raise_own(self.incarnation, self.now)
                self.out += [SetTimer(GOSSIP, self.settings.gossip_s), SetTimer(UPDATE, 0.0)]
        return self.out

    def _on_timer(self, event: TimerFired) -> None:
        dice = Dice(event.chance)
        if event.name == GOSSIP:
            self.out.append(SetTimer(GOSSIP, self.settings.gossip_s))
            if not self.leaves:
                self._gossip(dice)
                self._recover(dice)
        else:
            self.out.append(SetTimer(UPDATE, self.settings.update_s))
            if not self.leaves:
                self._update(dice)

    # -----------------------------------------------------------------------------------------------------
    # views

    def _update(self, dice: Dice) -> None:
        """[apbcast Fig.2 UPDATE and MONITOR, l.3-14]"""
        self.views.raise_own(self.incarnation, self.now)
        self.views.monitor(self.now, self.settings.suspect_s, self.settings.tombstone_s)
        self._targets.clear()
        if self._is_alone() or dice.below(ASK_AGAIN) == 0:
            self._join(dice)
        for level in range(1, self.views.levels + 1):
            others = self.views.others(level)
            if others:
                other = dice.one(others)
                told = self.views.tell(other.address)
                self._say(other, ViewUpdate(neighbours=told, head=self.head))

    def _is_alone(self) -> bool:
        """It knows no immediate neighbour, or nobody but those: after a long partition they may be an island."""
        near = sum(1 for _ in self.views.neighbours())
        return not near or near == len(self.views.members)

    def _join(self, dice: Dice) -> None:
        """[apbcast Fig.2 l.17-23]: of who is nearest, or of a contact. Now and then also without need, for
        islands that do not know that they are some.
        """
        self._joins += 1
        nearest = sorted(self.views.members.values(), key=lambda m: common_level(m.address, self.views.address))
        known = [member.process for member in nearest[:3]]
        asked = known if self._joins % 2 and known else self.contacts
        there = [name for name in asked if name != self.process and name in self.connected]
        if there:
            self.out.append(Send((dice.one(there),), JoinGossip(joining=self._own())))

    def _own(self) -> Neighbour:
        own = self.views.own
        return Neighbour(
            process=self.process,
            address=own.address,
            incarnation=own.incarnation,
            counter=own.counter,
            interest=own.interest,
        )

    def _on_join(self, event: Receive, message: JoinGossip) -> None:
        """[apbcast Fig.2 l.48-52]"""
        address = tuple(message.joining.address)
        if len(address) != self.views.levels:
            return
        reply = JoinReply(neighbours=self.views.tell(address), head=self.head)
        self.out.append(Send((event.source,), reply))
        self._merge((message.joining,))

    def _on_join_reply(self, event: Receive, message: JoinReply) -> None:
        """[apbcast Fig.2 l.20-23]"""
        self._merge(message.neighbours)
        self._learn_head(message.head)

    def _on_update(self, event: Receive, message: ViewUpdate) -> None:
        self._merge(message.neighbours)
        self._learn_head(message.head)

    def _merge(self, neighbours: Sequence[Neighbour]) -> None:
        self.views.merge(neighbours, self.now)
        self._targets.clear()

    def _leave(self) -> None:
        """[apbcast Fig.2 LEAVE, l.45-47]"""
        self.leaves = True
        farewell = ViewUpdate(neighbours=[self.views.farewell()], head=self.head)
        for member in list(self.views.neighbours()):
            self._say(member, farewell)

    def _say(self, member: Member, message: ViewUpdate | RumourGossip) -> None:
        if member.process in self.connected and member.process != self.process:
            self.out.append(Send((member.process,), message, urgent=False))

    # ----------------------------------------------------------------------------------------------------
    # gossip

    def _on_given(self, event: Given) -> None:
        """A root begins to tell what it has merged [apbcast Fig.4 l.37], and a broadcaster what is its own
        [Fig.5 l.16].
        """
        for item in event.items:
            self._take(item, self.settings.levels - 1, 0)
        if event.head:
            self._learn_head(event.head)
        self._hand_over()

    def _gossip(self, dice: Dice) -> None:
        told, finished = self.rumours.tell(self._who_wants, dice)
        for each in told:
            self._tell(each)
        if self._is_live:
            for item in finished:
                if not self.delivery.has_seen(item):
                    self.delivery.take(item)
        self._hand_over()

    def _who_wants(self, level: int, item: Numbered) -> Sequence[Address]:
        """Whom the level's view names, and who is interested in one of the message's groups [apbcast 10.1]."""
        groups = tuple(place.group for place in item.places)
        known = self._targets.get((level, groups))
        if known is None:
            others = self.views.others(level)
            known = [m.address for m in others if not m.interest or any(group in m.interest for group in groups)]
            self._targets[level, groups] = known
        return known

    def _tell(self, told: Told) -> None:
        rumours = [Rumour(item=item, round=rounds) for item, rounds in told.rumours]
        gossip = RumourGossip(level=told.level, rumours=rumours, head=self.head)
        if self.settings.pull and self.is_exact and self.has_begun:
            gossip.low = self.cache[0].mseq if self.cache else self.delivery.next
            gossip.next = self.delivery.next
        member = self.views.members.get(told.to)
        if member is not None:
            self._say(member, gossip)

    def _on_gossip(self, event: Receive, message: RumourGossip) -> None:
        """[apbcast Fig.6 l.20-22]"""
        if not 0 < message.level < self.settings.levels:
            return
        for rumour in message.rumours:
            self._take(rumour.item, message.level, rumour.round)
        self._learn_head(message.head)
        self._hand_over()
        self._pull(event.source, message)

    def _take(self, item: Numbered, level: int, rounds: int) -> None:
        if not self.has_begun and not self.interest:
            self._begin_at(item.mseq)
        self.head = max(self.head, item.mseq + 1)
        if item.mseq in self.rumours:
            return
        if not self.has_begun or not self._wants(item):
            self._pass_on(item, level, rounds)
        elif not self.delivery.has_seen(item):
            self.rumours.add(item, level, rounds)
            if not self._is_live:
                self.delivery.take(item)

    def _pass_on(self, item: Numbered, level: int, rounds: int) -> None:
        """A representative tells what it does not want itself, once, and does not hand it over."""
        if item.mseq not in self._passed:
            self._passed[item.mseq] = None
            self.rumours.add(item, level, rounds)
            if len(self._passed) > self.settings.cache:
                del self._passed[next(iter(self._passed))]

    def _wants(self, item: Numbered) -> bool:
        return not self.interest or any(place.group in self.interest for place in item.places)

    def _begin_at(self, mseq: int) -> None:
        """A leaf without a past begins at what it hears of first (R20)."""
        self.has_begun = True
        self.delivery.begin_at(mseq)

    def _learn_head(self, head: int) -> None:
        if head and not self.has_begun and not self.interest:
            self._begin_at(head)
        self.head = max(self.head, head)

    def _hand_over(self) -> None:
        rumoured = (m for rumours in self.rumours.levels.values() for m in rumours) if self._is_live else ()
        items = self.delivery.due(rumoured)
        if items:
            self.cache.extend(items)
            self.out.append(Handed(items))

    @property
    def _is_live(self) -> bool:
        return self.settings.leaves is Leaves.LIVE and not self.interest

    # --------------------------------------------------------------------------------------------------
    # recovery

    def _recover(self, dice: Dice) -> None:
        if isinstance(self.delivery, Interested) and self.head > self.delivery.head.mseq:
            self._ask_head(dice)
        if self._is_live or not self.has_begun:
            return
        question = self.recovery.look(self.delivery.missing(self.head), self.now, dice)
        whom = self.recovery.whom(self.views, self.contacts, dice) if question is not None else None
        if question is not None and whom is not None and whom in self.connected:
            self.out.append(Send((whom,), AskMissed(first=question[0], count=question[1], groups=self.interest)))

    def _ask_head(self, dice: Dice) -> None:
        there = [root for root in self.contacts if root in self.connected and root != self.process]
        if there:
            self.out.append(Send((dice.one(there),), AskHead(groups=self.interest)))

    def _pull(self, source: str, message: RumourGossip) -> None:
        """10.2: its sender has what is missing here [apbcast 10.2 Gossiping]."""
        missing = self.delivery.missing(self.head) if message.next and self.is_exact and self.has_begun else None
        if missing is not None and message.low <= missing[0] < message.next:
            count = min(missing[1], message.next - missing[0], RANGE_MAX)
            self.out.append(Send((source,), AskMissed(first=missing[0], count=count)))

    def _on_ask(self, event: Receive, message: AskMissed) -> None:
        """From the cache, if it is there; a root has it in its log."""
        if not self.cache or not self.cache[0].mseq <= message.first <= self.cache[-1].mseq or not self.is_exact:
            if self.is_root:
                self.out.append(Hand(ROOT, Asked(self.now, 0.0, event.source, message)))
            return
        begin = message.first - self.cache[0].mseq
        end = min(begin + min(message.count, RANGE_MAX), len(self.cache))
        found = [self.cache[index] for index in range(begin, end)]
        items = [
            i for i in found if not message.groups or any(place.group in message.groups for place in i.places)
        ]
        missed = Missed(items=items, first=message.first, through=message.first + len(found))
        self.out.append(Send((event.source,), missed))

    def _on_missed(self, event: Receive, message: Missed) -> None:
        """It is not told on: others that lack it ask for themselves."""
        if message.begins > self.delivery.next and self.has_begun:
            missing = self.delivery.missing(self.head)
            if missing is not None and missing[0] < message.begins:
                self.delivery.begin_at(message.begins)
                self.cache.clear()
                self.out.append(Skipped("", message.begins))
        for item in message.items:
            self._complete(message.first, item.mseq)
            if not self.delivery.has_seen(item) and self._wants(item):
                self.delivery.take(item)
        self._complete(message.first, message.through)
        self.recovery.answered(message.through)

    def _complete(self, first: int, through: int) -> None:
        """Room is made before what comes next is taken: a full buffer drops its highest."""
        if isinstance(self.delivery, Interested):
            self.delivery.complete(first, through)
        self._hand_over()

    def _on_ask_head(self, event: Receive, message: AskHead) -> None:
        if self.is_root:
            self.out.append(Hand(ROOT, Asked(self.now, 0.0, event.source, message)))

    def _on_head(self, event: Receive, message: Head) -> None:
        if not isinstance(self.delivery, Interested):
            return
        if not self.has_begun:
            self.has_begun = True
            self.delivery.start_at(message)
        self.delivery.learn(message)
        self._hand_over()

    # --------------------------------------------------------------------------- what drivers and checkers ask

    def buffers(self) -> dict[str, int]:
        return {
            "rumours": len(self.rumours),
            "held": self.delivery.held(),
            "passed": len(self._passed),
            "cache": len(self.cache),
            "known": self.views.known(),
            "tombstones": len(self.views.tombstones),
        }
