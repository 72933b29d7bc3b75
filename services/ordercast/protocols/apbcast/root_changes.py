"""Changing roots, and removing broadcasters: what a root does of it (R1 to R6 and R10 in README.md).

A configuration that is defined asks the members of the last started one to seal it. Whoever has sealed says
durably what there is, and acknowledges nothing any more until it is in one that has started. A new member is
ready when all that a majority handed over is on its disk. A broadcaster that is to be removed is sealed by its
home's members in just the same way.
"""

from ordercast.core.ids import pack_u64
from ordercast.core.machine import Receive, Send
from ordercast.core.quorums import has_majority
from ordercast.protocols.apbcast.merge import is_ahead
from ordercast.protocols.apbcast.root_base import GROUP_SEAL, STREAM_SEAL
from ordercast.protocols.apbcast.root_snapshots import RootSnapshots
from ordercast.v1.apbcast_pb2 import (
    AskSnapshot,
    Begun,
    Fill,
    Ready,
    RootGroup,
    RootHandOver,
    SealConfiguration,
    StreamPosition,
    StreamSealed,
)


class RootChanges(RootSnapshots):
    #: What was handed over to this process for the configuration that is defined, by giver.
    _handed: dict[str, RootHandOver]
    _handed_for = 0
    #: The process of the registrar, as it introduced itself.
    registrar = ""

    # ------------------------------------------------------------------------------------------------- handing
    # over

    def on_seal_configuration(self, event: Receive, message: SealConfiguration) -> None:
        """Whoever asks has read of a configuration that is defined. Sealing for one that never starts costs a
        pause.
        """
        group = self.group
        if group is None or group.group != message.group or self.process not in group.started.members:
            return
        if message.configuration <= group.started.number:
            return
        self._seal_for(message.configuration)
        if self.durable.group_seal >= message.configuration:
            self.out.append(Send((event.source,), self._hand_over(group, message.configuration)))

    def _seal_for(self, configuration: int) -> None:
        if configuration > self.group_seal:
            self.group_seal = configuration
            self.changes.append((GROUP_SEAL, pack_u64(configuration)))

    def _hand_over(self, group: RootGroup, configuration: int) -> RootHandOver:
        """Of all streams, since any group may be the keeper of one."""
        lengths = [StreamPosition(stream=n, index=self.durable.length(n)) for n in self.streams]
        state = self.durable.state
        return RootHandOver(
            group=group.group,
            configuration=group.started.number,
            next=configuration,
            lengths=lengths,
            state=type(state)(view=state.view, mseq=state.mseq, positions=state.positions),
        )

    # ------------------------------------------------------------------------------------------------- taking
    # over

    def on_hand_over(self, event: Receive, message: RootHandOver) -> None:
        group = self.group
        if group is None or message.group != group.group or message.next != group.defined.number:
            return
        if message.configuration != group.started.number or event.source not in group.started.members:
            return
        if self._handed_for != message.next:
            self._handed, self._handed_for = {}, message.next
        self._handed[event.source] = message
        self._ask_for_handed(message, event.source)

    def _ask_for_handed(self, message: RootHandOver, giver: str) -> None:
        for position in message.lengths:
            stream = self.streams.get(position.stream)
            if stream is not None:
                stream.spoken_of = max(stream.spoken_of, position.index)
        if self.is_worth_taking(message.state) and giver in self.connected:
            self.out.append(Send((giver,), AskSnapshot()))

    def take_part(self, turn: int) -> None:
        """Every tick, until the configuration that is defined has started."""
        group = self.group
        if group is None or group.defined.number == group.started.number:
            return
        if self.process not in group.defined.members:
            return
        if group.started.number:
            self._ask_to_seal(group)
            if self._has_all(group):
                self._say_ready(group)
        elif self._has_begun_like_others(group, turn):
            self._say_ready(group)

    def _ask_to_seal(self, group: RootGroup) -> None:
        configuration = group.defined.number
        question = SealConfiguration(group=group.group, configuration=configuration)
        others = [n for n in group.started.members if n != self.process and n in self.connected]
        self.out.append(Send(others, question))
        if self.process in group.started.members:
            self._seal_for(configuration)

    def _has_all(self, group: RootGroup) -> bool:
        """What a majority of the sealed handed over is on this disk: the longest prefixes, and the furthest
        merge.
        """
        handed = dict(self._handed) if self._handed_for == group.defined.number else {}
        givers = list(handed)
        if self.process in group.started.members and self.durable.group_seal >= group.defined.number:
            givers.append(self.process)
        if not has_majority(group.started.members, givers):
            return False
        for giver, message in handed.items():
            if not self._has_durably(message):
                self._ask_for_handed(message, giver)
                return False
        return True

    def _has_durably(self, message: RootHandOver) -> bool:
        """A stream that this root has not heard of is one to wait for; unless it is over."""
        if is_ahead(message.state, self.durable.state, self.ends):
            return False
        for position in message.lengths:
            number, length = position.stream, position.index
            if number >= self.known.state.next_stream:
                return False
            end = self.ends.get(number)
            if number in self.streams and self.durable.length(number) < min(
                length, length if end is None else end
            ):
                return False
        return True

    def _has_begun_like_others(self, group: RootGroup, turn: int) -> bool:
        """A group that is created: any root's snapshot is on this disk, if there is any root (R10)."""
        others = [n for g in self.known.groups.values() if g.group != group.group for n in g.started.members]
        if not others or not self.known.state.views or self.durable.state.view >= self.known.first_view:
            return True
        self.ask_for_snapshot(others, turn)
        return False

    def _say_ready(self, group: RootGroup) -> None:
        self.tell_registrar(Ready(group=group.group, configuration=group.defined.number))

    # --------------------------------------------------------------------------------------------------
    # removals

    def seal_streams(self) -> None:
        """Those that membership wants removed, in the configuration that it names (R6)."""
        for stream, configuration in self.known.removals.items():
            is_here = self.is_home_of(stream) and configuration == self.configuration
            if is_here and self.stream_seals.get(stream, 0) != configuration:
                self.stream_seals[stream] = configuration
                self.changes.append((STREAM_SEAL + pack_u64(stream), pack_u64(configuration)))

    def tell_sealed(self) -> None:
        group = self.group
        for stream, configuration in self.known.removals.items():
            is_durable = self.durable.stream_seals.get(stream) == configuration
            if group is not None and is_durable and configuration == self.configuration:
                length = self.durable.length(stream)
                self.tell_registrar(
                    StreamSealed(stream=stream, group=group.group, configuration=configuration, length=length)
                )

    def on_fill(self, event: Receive, message: Fill) -> None:
        stream = self.streams.get(message.stream)
        if stream is not None and self.stream_seals.get(message.stream) == message.configuration:
            stream.spoken_of = max(stream.spoken_of, message.length)
            self.fetch_from(stream.number, message.holder)

    def is_sealed(self, stream: int) -> bool:
        """Nothing more is taken from its broadcaster. The seal lapses with the configuration."""
        sealed = self.stream_seals.get(stream, 0)
        return sealed != 0 and self.group is not None and sealed == self.group.started.number

    def tell_begun(self) -> None:
        group = self.group
        view = self.durable.state.view
        if group is not None and view and view >= self.known.first_view and self.configuration:
            self.tell_registrar(Begun(group=group.group, configuration=self.configuration, view=view))

    def tell_registrar(self, message: object) -> None:
        if self.registrar in self.connected:
            self.out.append(Send((self.registrar,), message))
