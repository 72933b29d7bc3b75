"""What a gateway can set."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    tick_s: float = 0.1
    #: An envelope that is not finished after so long is sent again, or after several times what envelopes take at
    #: present, if that is longer; then at intervals that double, up to the maximum.
    resend_s: float = 0.5
    resend_s_max: float = 2.0
    #: How long a process that does not answer is believed to be down before it is tried again. Longer than the
    #: longest time between two resends, or it would lapse in between.
    suspicion_s: float = 5.0
    #: Messages a producer may have here without a receipt: its credits.
    producer_messages_max: int = 256
    #: Requests of all producers that are in no envelope yet, together.
    waiting_bytes_max: int = 64 << 20
    #: How much longer than it has to a message may take for what is here before it. For those that keep to a fair
    #: share, twice that.
    backlog_s_max: float = 0.25
    #: So many messages without a receipt are taken in any case, and so many until it is known how fast it goes.
    backlog_messages_min: int = 256
    backlog_messages_first: int = 1024
    #: Producers that have nothing here and are still remembered; the least recently heard of goes first.
    producers_idle_max: int = 1024
    #: The same for those of which something was refused that did not come again.
    producers_refused_max: int = 16_384
    #: Envelopes that are not finished; what replicas keep per gateway is bounded by it.
    envelopes_open_max: int = 64
    #: While so many envelopes to the same cells have no answer, only full ones leave for them.
    envelopes_busy: int = 4
    #: Of so many envelopes to a group, one says which are finished: hearing it is work, the more of them are open.
    finished_every: int = 16
    envelope_messages_max: int = 1024
    envelope_bytes_max: int = 1 << 20
    payload_bytes_max: int = 1 << 20
    groups_max: int = 64
    #: Protocols that order across groups, for those who need one.
    protocols_across: tuple[str, ...] = ()
    #: For telemetry: the share of envelopes whose traces are kept; whether they say when they were accepted.
    sampling: float = 0.0
    tells_time: bool = False
