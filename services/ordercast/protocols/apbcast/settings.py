"""What a domain for very large audiences can set, and what each choice trades."""

from dataclasses import dataclass
from enum import StrEnum


class Rounds(StrEnum):
    """What a rumour says about the rounds that it has behind it [apbcast Fig.6 l.17]."""

    #: As the figure has it: whoever receives it starts a count behind. More messages, and more processes
    #: reached.
    FIGURE = "figure"
    #: The round that it is sent in counts. This keeps the bound of 8.3.
    BOUNDED = "bounded"


class Leaves(StrEnum):
    #: Every message, without gap, as soon as numbers are contiguous.
    EXACT = "exact"
    #: What gossip brings; a number that was skipped is never delivered later.
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class Settings:
    #: L: more levels mean fewer processes that each one knows, and more rounds.
    levels: int = 3
    #: R: representatives of a subgroup at the level above. More of them lose fewer messages, and send more.
    representatives: int = 3
    #: F: to how many processes a rumour goes in each round. More reach more, with more messages.
    fanout: int = 3
    #: The time between two rounds: shorter is sooner, and costs more frames.
    gossip_s: float = 0.05
    #: The time between two updates of views, and after how long a silent neighbour is believed to be gone.
    update_s: float = 0.2
    suspect_s: float = 1.5
    #: How long it is remembered that a process is gone. Longer than news of it can still be under way.
    tombstone_s: float = 10.0
    rounds: Rounds = Rounds.BOUNDED
    #: c [apbcast 8.3]: rounds at a level are c ln(processes there).
    rounds_factor: float = 1.0
    leaves: Leaves = Leaves.EXACT
    #: A live leaf holds a message for so many rounds more if a lower number is missing (10.2 Buffering).
    patience_rounds: int = 0
    #: Rumours say which numbers their sender can answer for, and whoever lacks some asks for them (10.2
    #: Gossiping).
    pull: bool = False
    #: H: numbers that a leaf holds behind a gap. If it is full it drops the highest.
    hold: int = 1024
    #: The last messages that a leaf keeps for its neighbours. More of them spare roots.
    cache: int = 1024
    #: How long a leaf waits before it asks for what it misses.
    missed_s: float = 0.3
    #: W: a broadcaster's messages that its home roots have not merged durably. Its queue holds as many again.
    window: int = 64
    #: How often roots and broadcasters repeat what may be lost.
    tick_s: float = 0.1
    #: The merge waits for a stream, and nothing comes of it: so long after, its broadcaster is removed.
    silent_s: float = 1.0
    #: A broadcaster whose home group acknowledges nothing for so long goes to another one.
    home_s: float = 2.0
    #: Producers whose repeated messages are recognised.
    producers: int = 4096

    def __post_init__(self) -> None:
        if self.levels < 2:
            raise ValueError("a subdivision has at least two levels")
        if self.representatives < 1 or self.fanout < 1:
            raise ValueError(
                "a subgroup has at least one representative, and a rumour goes to at least one process"
            )
