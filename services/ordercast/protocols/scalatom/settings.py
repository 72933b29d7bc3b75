"""What a domain that runs SCALATOM can set."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Times say how long a fault is felt; none of them is a safety argument."""

    #: How often the machine looks for what is overdue.
    tick_s: float = 0.1
    #: No word of a replica about an envelope for so long: relay, pull, ask, take over. Doubles each time.
    silence_s: float = 0.3
    silence_s_max: float = 2.0
    #: Where decisions take long, silence is normal for longer: four times as long as they take, at most this.
    patience_s_max: float = 3.0
    #: Gossip at least this often, if only to say "nothing new since".
    gossip_s: float = 1.0
    #: The clock is reserved this far ahead, so that few receipts persist it (E7).
    clock_reserved: int = 1000
    #: Idempotence state expires after this distance in sequence numbers. All replicas must agree on it. Numbers
    #: rise by about two per envelope of the busiest group, and jump ahead where a clock was raised: keep it large.
    idempotence_distance: int = 1_000_000_000
    #: How many sequences per (producer, set) keep their offsets for repeated receipts.
    idempotence_window: int = 1024
    #: Entries of the log in one catch-up chunk.
    log_chunk: int = 64
    #: Relay each envelope and decision on first receipt, as the paper's reliable multicast does, instead of
    #: on silence. Costs (d-1)^2 + (d-1)(d-2) messages more; for comparison with the paper.
    relay_eagerly: bool = False
