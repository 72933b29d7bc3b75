"""Who publishes: it numbers its messages, repeats what has no receipt, and goes elsewhere when it loses
patience.
"""

from collections.abc import Callable

from ordercast.protocols.apbcast.events import BROADCASTER, NotTaken, Publish, Receipted
from ordercast.sim.apbcast.scenario import ProducerPlan
from ordercast.sim.world import World
from ordercast.v1.apbcast_pb2 import Publication

LOOK_S = 0.1


class Producer:
    def __init__(
        self, world: World, name: str, plan: ProducerPlan, published: Callable[[Publication, ProducerPlan], None]
    ) -> None:
        self.world = world
        self.name = name
        self.plan = plan
        self.published = published
        self.sequence = 0
        #: In the order of their sequences: sent, and without a receipt.
        self.pending: dict[int, Publication] = {}
        #: Those of them that the broadcaster has taken, as far as it has said otherwise.
        self.taken: dict[int, None] = {}
        self.taken_by = 0
        self.turn = 0
        self.heard_at = 0.0
        self._was_refused = False

    def begin(self) -> None:
        self.world.after(LOOK_S, self.look)

    @property
    def is_done(self) -> bool:
        return self.sequence == len(self.plan.messages) and not self.pending

    def look(self) -> None:
        world = self.world
        if self.pending and world.now - self.heard_at > self.plan.patience_s:
            # Everything again, in its order, through the next one.
            self.turn += 1
            self.taken.clear()
            self.heard_at = world.now
        self._publish_due()
        self._send()
        if not self.is_done:
            world.after(LOOK_S, self.look)

    def _publish_due(self) -> None:
        messages = self.plan.messages
        while self.sequence < len(messages) and len(self.pending) < self.plan.pipeline:
            at, groups = messages[self.sequence]
            if at > self.world.now:
                return
            if not self.pending:
                self.heard_at = self.world.now
            self.sequence += 1
            cast = Publication(producer=self.name.encode(), sequence=self.sequence, groups=groups)
            cast.body = f"{self.name}:{self.sequence}".encode()
            self.pending[self.sequence] = cast
            self.published(cast, self.plan)

    def _send(self) -> None:
        broadcaster = self.plan.broadcasters[self.turn % len(self.plan.broadcasters)]
        process = self.world.processes[broadcaster]
        if not process.up:
            return
        if process.incarnation != self.taken_by:
            # It knows nothing of what was given to another life of it, or to somebody else.
            self.taken.clear()
            self.taken_by = process.incarnation
        for sequence, cast in list(self.pending.items()):
            if sequence in self.taken:
                continue
            self._was_refused = False
            process.tell(BROADCASTER, Publish(*process.clock(), cast, next(iter(self.pending))))
            if self._was_refused:
                return
            self.taken[sequence] = None

    def on_refused(self, effect: NotTaken) -> None:
        self._was_refused = True
        for sequence in [s for s in self.taken if s >= effect.cast.sequence]:
            del self.taken[sequence]

    def on_receipt(self, effect: Receipted) -> None:
        self.heard_at = self.world.now
        self.pending.pop(effect.cast.sequence, None)
