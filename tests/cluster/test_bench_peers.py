"""The systems that the bench compares with, really started: measured, and what they acknowledged is there."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ordercast.bench.meter import Meter
from ordercast.bench.peers import etcd, nats
from ordercast.bench.peers.installed import missing
from ordercast.bench.plan import BenchPlan, Groups, pattern_named
from ordercast.bench.servers import BenchError, PeerProcess, Servers, processes
from ordercast.bench.systems import PEERS
from ordercast.bench.trial import BenchTrial, run

ROOT = Path(__file__).parents[2]
PLAN = BenchPlan(messages=300)
IN_FLIGHT = 8
PATIENCE_S = 60.0


@pytest.fixture(params=sorted(PEERS))
def peer(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    need(name)
    return name


def need(name: str) -> None:
    lacking = missing([name], is_plotted=False)
    if lacking:
        with (ROOT / ".left-out").open("a") as left_out:
            left_out.write(f"the bench against {name}: the extra `bench` is not installed\n")
        pytest.skip(f"not installed: {', '.join(lacking)}")


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


async def acknowledged(peer: str, servers: Servers, plan: BenchPlan) -> int:
    """Publishes a few hundred messages; how many were acknowledged, to the last."""
    meter, stop = Meter(), asyncio.Event()
    pattern = pattern_named("same", plan)
    async with asyncio.timeout(PATIENCE_S):
        producing = asyncio.create_task(PEERS[peer].produce(servers, plan, pattern, IN_FLIGHT, meter, stop))
        while meter.acknowledged < 300 and not producing.done():
            await asyncio.sleep(0.01)
        stop.set()
        await producing
    assert meter.last_error is None
    return meter.acknowledged


async def stored_in_etcd(servers: Servers, plan: BenchPlan) -> list[int]:
    return [etcd.stored(servers, group) for group in pattern_named("same", plan).groups]


async def stored_in_nats(servers: Servers, plan: BenchPlan) -> list[int]:
    return [await nats.stored(servers)]


STORED: dict[str, Callable[[Servers, BenchPlan], Coroutine[Any, Any, list[int]]]] = {
    "etcd": stored_in_etcd,
    "nats": stored_in_nats,
}


@pytest.mark.parametrize("groups", [pytest.param(1, marks=pytest.mark.long), 2])
def test_what_was_acknowledged_is_there_and_in_the_end_no_process_is(
    peer: str, groups: int, tmp_path: Path
) -> None:
    plan = BenchPlan(groups=groups)

    async def publish_and_count() -> tuple[int, list[int]]:
        return await acknowledged(peer, servers, plan), await STORED[peer](servers, plan)

    with PEERS[peer].running(tmp_path, plan, pattern_named("same", plan)) as servers:
        assert len(servers.addresses) == len(servers.pids) == 3
        assert not any(map(is_gone, servers.pids))
        count, stored = asyncio.run(publish_and_count())
        assert count >= 300
        assert set(stored) == {count}
    assert all(map(is_gone, servers.pids))


def test_a_peer_is_measured_as_our_own_system_is(
    peer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    (row,) = run(BenchTrial(peer, "same", (IN_FLIGHT,)), PLAN, said.append)
    assert row.case == (peer, "same", IN_FLIGHT)
    assert row.messages_per_second > 0
    assert 0 < row.p50_ms <= row.p99_ms
    assert row.server_cpu_s_per_10k > 0
    assert row.client_cpu_s_per_10k > 0
    assert row.rss_anon_mb_max > 0
    assert (row.failed, row.envelopes) == (0, None)
    assert said == [f"{peer} same, 8 in flight"]
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_etcd_has_as_many_puts_as_a_message_has_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("etcd")
    puts: list[int] = []
    publish = etcd.Puts.publish

    async def counted(self: etcd.Puts, groups: Groups, key: bytes, payload: bytes) -> None:
        puts.append(len(groups))
        await publish(self, groups, key, payload)

    monkeypatch.setattr(etcd.Puts, "publish", counted)
    pattern = pattern_named("random-8", PLAN)

    async def publish_and_count() -> int:
        meter, stop = Meter(), asyncio.Event()
        async with asyncio.timeout(PATIENCE_S):
            producing = asyncio.create_task(etcd.produce(servers, PLAN, pattern, 64, meter, stop))
            while meter.acknowledged < 300 and not producing.done():
                await asyncio.sleep(0.01)
            stop.set()
            await producing
        assert meter.last_error is None
        return meter.acknowledged

    with etcd.running(tmp_path, PLAN, pattern) as servers:
        assert asyncio.run(publish_and_count()) == len(puts)
        assert sum(etcd.stored(servers, group) for group in pattern.groups) == sum(puts)
    assert set(puts) == {1, 2, 3}


def test_a_server_that_ends_by_itself_is_told_with_its_last_words(tmp_path: Path) -> None:
    def wait_for_it() -> None:
        while True:
            process.check()

    with processes() as started:
        process = PeerProcess("talker", ["sh", "-c", "echo no such option; exit 3"], tmp_path / "talker.log")
        started.append(process)
        with pytest.raises(BenchError, match="talker ended with 3: no such option"):
            wait_for_it()
