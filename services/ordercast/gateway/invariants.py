"""What is always so between two steps of a gateway's machine: a few comparisons, whatever is open or waits."""

from typing import TYPE_CHECKING

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import counter_of, incarnation_of, short

if TYPE_CHECKING:
    from ordercast.gateway.machine import Gateway


def check(gateway: "Gateway") -> None:
    batching, count = gateway.batching, len(gateway.open)
    # "Nothing is unbounded. Every queue and buffer has a limit, and limits act at intake."
    if count > gateway.settings.envelopes_open_max:
        raise InvariantBroken(f"{count} envelopes are open")
    # "An envelope leaves when the producer's earlier envelopes that share a group with it are decided": whatever
    # changed that was looked at.
    if batching.is_due and not gateway.is_fill_due:
        raise InvariantBroken("something may leave, and is not looked at")
    if batching.waiting_bytes < 0 or (batching.waiting_bytes and not batching.waiting):
        raise InvariantBroken(f"{batching.waiting_bytes} bytes wait in {len(batching.waiting)} producers")
    if not count:
        return
    # "A resend is the same envelope": ids are this life's, and none is used twice.
    latest = next(reversed(gateway.open))
    if incarnation_of(latest) != gateway.incarnation or counter_of(latest) >= batching.counter:
        raise InvariantBroken(f"the envelope {short(latest)} is open, and the next is {batching.counter}")
    # "A gateway resends what is open": somebody looks after it.
    if not gateway.is_ticking:
        raise InvariantBroken(f"{count} envelopes are open, and nobody looks after them")
    if len(batching.unanswered) > count:
        raise InvariantBroken(f"{len(batching.unanswered)} sets wait for answers, and {count} envelopes are open")
