"""The replicated log under crashes, lost writes, partitions and lost messages; and proof that the checks see."""

import os
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from ordercast.core.machine import Start
from ordercast.protocols.paxos import log_leader
from ordercast.protocols.paxos.log import LogReplica
from ordercast.protocols.paxos.log_leader import Candidacy
from ordercast.protocols.paxos.log_state import LogState
from ordercast.v1.consensus_pb2 import LogItem
from tests.sim.paxos_log import violation_of

ROOT = Path(__file__).resolve().parents[2]
SEEDS_PER_BLOCK = 50


@pytest.mark.parametrize("block", range(8))
def test_the_log_keeps_its_promises_under_faults(block):
    seeds = range(block * SEEDS_PER_BLOCK, (block + 1) * SEEDS_PER_BLOCK)
    assert [violation for seed in seeds if (violation := violation_of(seed))] == []


def test_a_seed_is_one_run_byte_for_byte_whatever_the_hash_seed():
    script = "from tests.sim.paxos_log import Run; r = Run(7); r.judge(); print(r.world.digest())"
    digests = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", script]
        run = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
        digests.append(run.stdout)
    assert digests[0] == digests[1] != ""


# ------------------------------------------------------------------------------------------------- mutants

_on_start, _persist = LogReplica._on_start, LogReplica.persist


def forget_votes(self: LogReplica, event: Start) -> None:
    _on_start(self, event)
    decided = self.state.decided
    self.state.entries = {slot: entry for slot, entry in self.state.entries.items() if slot < decided}


def answer_before_writing(self: LogReplica, barrier: bool = True) -> None:
    _persist(self, barrier=False)


def half_is_enough(members: Collection[str], voters: Collection[str]) -> bool:
    return 2 * sum(1 for member in members if member in voters) >= len(members) - 1


def ignore_found_votes(self: Candidacy) -> list[LogItem]:
    return []


def take_any_item(self: LogState, round_: tuple[int, int]) -> bool:
    return self.decided in self.entries


def lead_without_catching_up(self: Candidacy) -> bool:
    return True


def keep_no_promise(self: LogReplica, round_: tuple[int, int]) -> None:
    self.number_max = max(self.number_max, round_[0])


@pytest.mark.parametrize(
    ("owner", "name", "mistake"),
    [
        (LogReplica, "_on_start", forget_votes),
        (LogReplica, "persist", answer_before_writing),
        (LogReplica, "raise_highest", keep_no_promise),
        (log_leader, "has_majority", half_is_enough),
        (Candidacy, "found_items", ignore_found_votes),
        (Candidacy, "has_caught_up", lead_without_catching_up),
        (LogState, "holds_decided", take_any_item),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_mistake_in_the_protocol_is_noticed(
    owner: Any, name: str, mistake: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, mistake)
    assert any(violation_of(seed) for seed in range(400))
