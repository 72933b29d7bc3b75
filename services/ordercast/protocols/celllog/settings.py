"""What a domain can set about the logs of its groups, whatever protocol orders them."""

from dataclasses import dataclass

from ordercast.protocols.celllog.forgetting import PRODUCERS_MAX


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Times say how long a fault is felt; none of them is a safety argument."""

    #: How often the machine looks for what is overdue, and how long silence is normal.
    tick_s: float = 0.1
    silence_s: float = 0.3
    #: A producer is forgotten at this distance in the order. All replicas must agree on it. What is counted is the
    #: protocol's: order numbers may rise by more than one per envelope, and jump ahead, so keep it large.
    idempotence_distance: int = 1_000_000_000
    #: How many sequences per (producer, set) keep their offsets for repeated receipts. All replicas must agree.
    idempotence_window: int = 4096
    #: How many producers of a destination set are remembered (forgetting.py). All replicas must agree on it.
    idempotence_producers: int = PRODUCERS_MAX
    #: Entries of the log in one piece of a copy, and their bytes; one entry goes whatever its size.
    log_chunk: int = 64
    log_chunk_bytes: int = 1 << 20
    #: Who copies a log asks for no more than so much in a second, so that it leaves room for others.
    copy_bytes_per_s: int = 64 << 20

    # See core.protocol.DomainSettings: a protocol says so if it is otherwise.

    @property
    def spans_groups(self) -> bool:
        return True

    @property
    def untold_past(self) -> str:
        return ""
