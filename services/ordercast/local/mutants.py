"""Processes that are broken on purpose, to see that the audit of a run notices.

`python -m ordercast.local.mutants MUTANT SERVICE... SETTINGS` runs services as `ordercast.cli.services` does, with
one thing wrong.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ordercast.core.machine import Receive
from ordercast.gateway.machine import Gateway
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.sequencer_pb2 import Disseminate


def forgetful_gateway() -> None:
    """A gateway that does not pass on who sent what: a message that is repeated becomes another message.

    Each range gets a producer of its own; the outcomes are shifted back, so that clients notice nothing.
    """
    anonymous: dict[bytes, Envelope] = {}
    send, on_delivered = Gateway.send, Gateway._on_delivered

    def without_producers(envelope: Envelope) -> Envelope:
        id_ = envelope.header.id
        if id_ not in anonymous:
            copy = anonymous[id_] = Envelope()
            copy.CopyFrom(envelope)
            for range_ in copy.header.ranges:
                range_.producer, range_.epoch, range_.first_sequence = os.urandom(16), 0, 1
        return anonymous[id_]

    def forgetting_send(self: Gateway, to: Sequence[str], message: Any) -> None:
        if isinstance(message, Disseminate):
            message = Disseminate(envelope=without_producers(message.envelope), again=message.again)
        send(self, to, message)

    def shifting_delivered(self: Gateway, event: Receive) -> None:
        opened = self.open.get(event.message.id)
        if opened is not None:
            for range_, outcome in zip(opened.envelope.header.ranges, event.message.outcomes, strict=False):
                for span in outcome.spans:
                    span.first_sequence += range_.first_sequence - 1
        on_delivered(self, event)

    Gateway.send = forgetting_send  # type: ignore[assignment, method-assign]
    Gateway._on_delivered = shifting_delivered  # type: ignore[assignment, method-assign]


MUTANTS: dict[str, Callable[[], None]] = {"forgetful-gateway": forgetful_gateway}


if __name__ == "__main__":
    from ordercast.cli.services import run

    MUTANTS[sys.argv[1]]()
    run(sys.argv[2:])
