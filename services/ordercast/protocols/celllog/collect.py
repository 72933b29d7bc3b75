"""How a member of a configuration collects what those of the one before have to hand over.

They are *sealed*: none of them does anything in the group any more. It asks them what they had, and its fellows,
some of which may have started, for all that they know. A majority of the sealed is enough, or one fellow. What is
handed over, and how a member starts from it, is for those who collect to say; here is whom to ask, who counts, and
when it is enough, for replicas and for acceptors alike.

Who lost what it had stored has no say. It may not know that yet itself, and answer: so it is not for its answer to
tell, but for our view; and what came before the view said so is dropped.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from ordercast.core.quorums import has_majority
from ordercast.core.view import Former, Group, OtherConfiguration


@dataclass(slots=True)
class Part:
    """What one member hands over, as far as it has come. It comes in pieces, by rising id."""

    #: Of a fellow that has started: all that was handed over to it, or more.
    is_whole: bool = False
    #: It never started in the configuration before: it counts for the majority, and says nothing.
    is_idle: bool = False
    #: The last id that came.
    after: bytes = b""
    is_complete: bool = False


P = TypeVar("P", bound=Part)


class Collect(Generic[P]):
    """For one group, in one configuration of it."""

    def __init__(self, process: str, group: Group, make: Callable[[bool, bool], P], *, is_acceptor: bool) -> None:
        """`make`: a part, which is whole or not, and idle or not."""
        self.process = process
        self.make = make
        self.is_acceptor = is_acceptor
        self.parts: dict[str, P] = {}
        self.group = group

    @property
    def configuration(self) -> int:
        return self.group.configuration

    def follow(self, group: Group) -> None:
        """As a later view has it, in the same configuration. Somebody may have lost what it told us.

        Or a majority has started: then the sealed are gone, and how many of them were a majority. Those who have
        started know the rest.
        """
        assert group.configuration == self.configuration
        self.group = group
        self.parts = {source: part for source, part in self.parts.items() if self.counts(source, part.is_whole)}

    # --------------------------------------------------------------------------------------------- who counts

    def sealed(self) -> list[str]:
        """Those of the configuration before that still know what they did there."""
        former = self.group.former
        return [] if former is None else [name for name in self._members(former) if name not in former.lost]

    def fellows(self) -> list[str]:
        """Those of this one that may have started."""
        group = self.group
        return [name for name in self._members(group) if name != self.process and name not in group.lost]

    def _members(self, configuration: Group | Former) -> tuple[str, ...]:
        return configuration.acceptors if self.is_acceptor else configuration.replicas

    def counts(self, source: str, is_whole: bool) -> bool:
        return source in (self.fellows() if is_whole else self.sealed())

    # ------------------------------------------------------------------------------------- asking and hearing

    def missing(self) -> list[tuple[str, bytes]]:
        """Whom to ask, and behind which id: those who have not answered, or not to the end.

        Answers may be lost, and who is not sealed yet gives none: so they are asked again until it is enough.
        """
        sources = dict.fromkeys([*self.sealed(), *self.fellows()])
        unheard = Part()
        there = [(source, self.parts.get(source, unheard)) for source in sources]
        return [(source, part.after) for source, part in there if not part.is_complete]

    def part(self, source: str, *, is_whole: bool, is_idle: bool) -> P:
        """That to which a piece from there belongs."""
        if not self.counts(source, is_whole):
            raise OtherConfiguration(self.group.name, f"{source} has nothing to hand over of {self.group.name!r}")
        part = self.parts.get(source)
        if part is None or part.is_whole != is_whole:
            # It has started since it was asked: what it has now comes from the beginning.
            part = self.parts[source] = self.make(is_whole, is_idle)
        return part

    # --------------------------------------------------------------------------------------------- enough

    def complete(self) -> dict[str, P]:
        return {source: part for source, part in self.parts.items() if part.is_complete}

    def enough(self, complete: Mapping[str, P]) -> dict[str, P]:
        """Of these, those to start from: a fellow's whole one, or those of a majority of the sealed. Or none.

        Who never started there said nothing that anybody relied on, and so belongs to a majority without a word:
        but one that did start there has to be among them, with all that was handed over to that configuration.
        """
        whole = [source for source, part in complete.items() if part.is_whole]
        if whole:
            first = min(whole)
            return {first: complete[first]}
        former = self.group.former
        if former is None or not has_majority(self._members(former), complete):
            return {}
        return {source: part for source, part in complete.items() if not part.is_idle}
