"""Silence as it is counted, who breaks it, and for whom."""

import asyncio
from types import SimpleNamespace

import grpc
import pytest

from ordercast.client.addresses import Addresses
from ordercast.client.live import LiveReader
from ordercast.client.subscription import Reader
from ordercast.client.types import Delivery
from ordercast.core.silence import ALIVE_MS, LOOK_S, PATIENCE_S, Silence
from ordercast.gateway import reading as reading_module
from ordercast.gateway import subscribing
from ordercast.gateway.reading import Reading
from ordercast.gateway.subscribing import Voice
from ordercast.runtime.transport import pauses
from ordercast.runtime.transport.pauses import with_signs_of_life
from ordercast.runtime.transport.status import Refused
from ordercast.v1.gateway_pb2 import Alive, SubscribeLiveResponse, SubscribeResponse, SubscribeStarted
from ordercast.v1.sequencer_pb2 import ReadGroupResponse, StartAt

SIGN = SubscribeResponse(alive=Alive(alive_ms=ALIVE_MS))
STARTED = SubscribeResponse(started=SubscribeStarted(offset=0, group_id="a#1"))
LOOKS = round(PATIENCE_S / LOOK_S)


def looks_until_left(silence: Silence) -> int | None:
    """None: it is never left."""
    return next((number for number in range(1, 1000) if silence.look()), None)


def reader() -> Reader[Delivery]:
    return Reader("a", Delivery, start=StartAt(earliest=True))


def test_who_never_says_anything_is_left():
    assert looks_until_left(Silence()) == LOOKS


def test_who_promised_signs_of_life_and_gives_none_is_left():
    silence = Silence()
    silence.heard(ALIVE_MS)
    assert looks_until_left(silence) == LOOKS


def test_who_gives_signs_of_life_is_not_left():
    silence = Silence()
    for _ in range(100):
        silence.heard(ALIVE_MS)
        assert not any(silence.look() for _ in range(LOOKS - 1))


def test_who_promises_signs_seldom_is_waited_for_longer():
    silence = Silence()
    silence.heard(10 * ALIVE_MS)
    found = looks_until_left(silence)
    assert found is not None
    assert found > LOOKS


def test_who_promised_nothing_may_be_silent_for_ever():
    """A gateway of an early version."""
    silence = Silence()
    silence.heard()
    assert looks_until_left(silence) is None


def test_silence_that_nobody_listens_to_does_not_count():
    silence = Silence()
    silence.is_listening = False
    assert looks_until_left(silence) is None


def test_the_first_word_is_waited_for_longer_if_nobody_says_it():
    reading = reader()
    patience = []
    for _ in range(6):
        patience.append(looks_until_left(reading.new_stream()))
        reading.start_request()
    assert patience == [LOOKS, 2 * LOOKS, 4 * LOOKS, 4 * LOOKS, 4 * LOOKS, 4 * LOOKS]
    reading.received(STARTED)
    reading.received(SIGN)
    assert [looks_until_left(reading.silence), looks_until_left(reading.new_stream())] == [LOOKS, LOOKS]


def test_subscribers_ask_for_signs_of_life_and_take_them_for_nothing_else():
    reading = reader()
    assert reading.start_request().start.alive
    reading.received(SIGN)
    assert reading.started is None
    reading.received(STARTED)
    assert (reading.started.offset, reading.take()) == (0, [])
    live = LiveReader("a")
    assert live.request("").alive
    assert live.received(SubscribeLiveResponse(alive_ms=ALIVE_MS)) is None
    assert live.received(SubscribeLiveResponse(group_id="a#1")) == []


def test_gateways_that_hang_are_chosen_last():
    addresses = Addresses(["a", "b"])
    addresses.avoid("a", 0.0)
    assert [addresses.choose(turn, 1.0) for turn in range(3)] == ["b", "b", "b"]
    addresses.avoid("b", 0.0)
    assert [addresses.choose(turn, 1.0) for turn in range(3)] == ["a", "b", "a"]


# --------------------------------------------------------------------------------------------------- who speaks


class Client:
    """Reads only while it is let."""

    def __init__(self) -> None:
        self.begun: list[SubscribeResponse] = []
        self.written = asyncio.Event()
        self.reads = asyncio.Event()

    async def write(self, response: SubscribeResponse) -> None:
        self.begun.append(response)
        await self.reads.wait()
        self.written.set()


def test_a_gateway_gives_a_sign_at_once_and_again_while_it_has_nothing_to_say(monkeypatch):
    monkeypatch.setattr(subscribing, "ALIVE_S", 0.001)

    async def main() -> list[SubscribeResponse]:
        client = Client()
        client.reads.set()
        async with asyncio.timeout(60), Voice(client, is_alive=True):
            while len(client.begun) < 3:
                client.written.clear()
                await client.written.wait()
        return client.begun[:3]

    assert asyncio.run(main()) == [SIGN] * 3


def test_a_gateway_gives_no_sign_to_a_client_that_did_not_ask(monkeypatch):
    monkeypatch.setattr(subscribing, "ALIVE_S", 0.0)

    async def main() -> list[SubscribeResponse]:
        client = Client()
        client.reads.set()
        async with Voice(client, is_alive=False) as voice:
            for _ in range(100):
                await asyncio.sleep(0)
            await voice.say(STARTED)
        return client.begun

    assert asyncio.run(main()) == [STARTED]


def test_signs_do_not_pile_up_for_a_client_that_does_not_read(monkeypatch):
    monkeypatch.setattr(subscribing, "ALIVE_S", 0.0)

    async def main() -> list[SubscribeResponse]:
        client = Client()
        async with Voice(client, is_alive=True):
            for _ in range(1000):
                await asyncio.sleep(0)
        return client.begun

    assert asyncio.run(main()) == [SIGN]


def test_signs_come_between_what_a_stream_says(monkeypatch):
    monkeypatch.setattr(pauses, "ALIVE_S", 0.001)

    async def main() -> list[str]:
        goes_on = asyncio.Event()

        async def words():
            yield "one"
            await goes_on.wait()
            yield "two"

        said = []
        async for word in with_signs_of_life(words(), "sign"):
            said.append(word)
            if said.count("sign") == 4:
                goes_on.set()
        return said

    said = asyncio.run(main())
    assert said[:5] == ["sign", "one", "sign", "sign", "sign"]
    assert [word for word in said if word != "sign"] == ["one", "two"]


# ---------------------------------------------------------------------------------------- a gateway that listens


@pytest.mark.parametrize("name", ["another", "gateway"])
def test_a_gateway_leaves_a_replica_that_falls_silent_unless_that_is_itself(monkeypatch, name):
    monkeypatch.setattr(reading_module, "LOOK_S", 0.001)
    monkeypatch.setattr(reading_module, "STALLED_S", 0.001)
    directory = SimpleNamespace(nodes={name: None}, cut_off=frozenset())
    reading = Reading(SimpleNamespace(name="gateway", directory=directory))  # type: ignore[arg-type]
    checks = 0

    async def silent():
        yield ReadGroupResponse(alive_ms=ALIVE_MS)
        yield ReadGroupResponse(next_offset=1, entries=[b"entry"])
        await asyncio.Event().wait()

    async def check() -> None:
        nonlocal checks
        checks += 1
        if checks == 10 * LOOKS:
            raise Refused(grpc.StatusCode.ABORTED, "it stayed", "STAYED")

    found = []

    async def main() -> None:
        async for response in reading._attended(name, silent(), check):
            found.append(response)

    with pytest.raises(Refused) as refused:
        asyncio.run(main())
    assert refused.value.reason == ("SILENT" if name == "another" else "STAYED")
    assert [list(response.entries) for response in found] == [[b"entry"]]
