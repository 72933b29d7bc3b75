"""What a sequencer says to requests that make no sense."""

import asyncio
from types import SimpleNamespace

import grpc
import pytest

from ordercast.runtime.transport.status import Refused
from ordercast.sequencer.server import SequencerServer
from ordercast.v1.sequencer_pb2 import ReadEntryRequest


@pytest.mark.parametrize("position", [(1 << 64) - 1, (1 << 62) + 1])
def test_a_position_that_no_log_has_is_the_callers_mistake(position):
    node = SimpleNamespace(logs=SimpleNamespace(check_served=lambda group: None), storage=None)
    request = ReadEntryRequest(group="g#1", position=position)
    with pytest.raises(Refused, match="no log has a position") as refused:
        asyncio.run(SequencerServer(node).ReadEntry(request, None))
    assert refused.value.code == grpc.StatusCode.INVALID_ARGUMENT
