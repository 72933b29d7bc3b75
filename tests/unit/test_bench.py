"""What the bench makes of figures: medians, goals, tables and the picture, from made-up rows."""

import io
import itertools
import json
import re
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ordercast.bench import cast_stages, cpu_profile, curves, during, stages, table, telemetry_cost
from ordercast.bench.agenda import Agenda, rotated
from ordercast.bench.comparison import ComparisonResult
from ordercast.bench.goals import Goal, judge, of_replays, of_telemetry
from ordercast.bench.meter import Meter, Used
from ordercast.bench.peers.installed import missing
from ordercast.bench.plan import BenchPlan, pattern_named
from ordercast.bench.plot import draw_curves
from ordercast.bench.report import BenchReport
from ordercast.bench.rows import BenchRow, Replay, medians
from ordercast.bench.saving import prefix_of, save, save_curves, save_report
from ordercast.bench.servers import BenchError
from ordercast.bench.steady import SteadyOutcome, Stretch, Timeline, joined
from ordercast.bench.trial import BenchTrial
from ordercast.bench.turns import Turns
from ordercast.runtime.telemetry.envelope_stages import Marks
from ordercast.v1.gateway_pb2 import DescribeGroupResponse

ROOT = Path(__file__).parents[2]
PLAN = BenchPlan(seconds=5.0)


def row(system: str, in_flight: int, rate: float, **others: Any) -> BenchRow:
    made = BenchRow(system, "same", in_flight, rate, 2.0, 4.0, 1.0, 0.5, 40.0, 0, rate, rate)
    return replace(made, **others)


#: A run in which everything was measured, and every goal is met.
ROWS = [
    row("ordercast", 1, 400, p50_ms=2.5),
    row("ordercast", 64, 13_000, p99_ms=20.0),
    row("ordercast", 1024, 110_000, server_cpu_s_per_10k=0.2),
    row("etcd", 1, 657, p50_ms=1.4),
    row("etcd", 64, 4_009, p99_ms=41.0),
    row("etcd", 1024, 4_497, server_cpu_s_per_10k=2.6),
    row("nats", 1, 803),
    row("nats", 64, 11_820),
    row("nats", 1024, 27_178),
    row("ordercast", 1024, 40_000, pattern="groups-1", envelopes=100, messages_per_envelope=512.0),
    row("ordercast", 1024, 33_000, pattern="groups-64", envelopes=900, messages_per_envelope=16.0),
    row("ordercast", 1024, 16_000, pattern="random-64", server_cpu_s_per_10k=0.7),
    row("etcd", 1024, 4_000, pattern="random-64", server_cpu_s_per_10k=1.4),
    row("ordercast", 1024, 18_000, pattern="random-8", server_cpu_s_per_10k=0.7),
    row("etcd", 1024, 4_500, pattern="random-8", server_cpu_s_per_10k=1.4),
    row("ordercast", 1024, 40_000, pattern="random-1"),
    row("ordercast", 1024, 2_000, pattern="cells-6"),
    row("etcd", 1024, 1_000, pattern="cells-6"),
    row("etcd", 1024, 4_000, pattern="random-1"),
]
REPLAYS = [
    Replay(500_000, 230_000.0, [60.0, 61.0, 59.0]),
    Replay(1_000_000, 240_000.0, [62.0, 63.0, 60.0]),
]
MACHINE = {
    "cpus": 2,
    "model": "some processor",
    "kernel": "6.1",
    "python": "3.11.7",
    "versions": {"ordercast": "0.1.0", "etcd": "3.5.1", "nats": None, "grpcio": "1.85.1", "lmdb": "3.0.0"},
    "date": "2026-11-16",
}


def result(rows: list[BenchRow]) -> ComparisonResult:
    agenda = Agenda(PLAN, ("same",), (1, 64, 1024), ("etcd", "nats"), repetitions=3)
    return ComparisonResult(agenda, rows, MACHINE)


def goals(rows: list[BenchRow], plan: BenchPlan = PLAN) -> dict[str, Goal]:
    return {goal.goal: goal for goal in judge(rows, plan)}


# --------------------------------------------------------------------------------------------------- medians


def test_a_row_is_the_median_of_its_repetitions_with_the_lowest_and_the_highest() -> None:
    rows = [row("etcd", 64, rate, p50_ms=p50) for rate, p50 in ((300.0, 1.0), (100.0, 9.0), (200.0, 2.0))]
    (middle,) = medians(rows)
    assert (middle.messages_per_second, middle.p50_ms) == (200.0, 2.0)
    assert (middle.messages_per_second_min, middle.messages_per_second_max) == (100.0, 300.0)


def test_medians_keep_cases_apart_and_in_the_order_in_which_they_came() -> None:
    first = [row("ordercast", 1, 10.0), row("etcd", 1, 20.0), row("etcd", 64, 30.0)]
    second = [row("etcd", 64, 32.0), row("etcd", 1, 22.0), row("ordercast", 1, 12.0)]
    middles = medians([*first, *second])
    assert [middle.case for middle in middles] == [one.case for one in first]
    assert [middle.messages_per_second for middle in middles] == [11.0, 21.0, 31.0]


def test_no_repetition_makes_up_for_a_failure_in_another() -> None:
    (middle,) = medians([row("nats", 64, 1.0, failed=0), row("nats", 64, 1.0, failed=7), row("nats", 64, 1.0)])
    assert middle.failed == 7


def test_what_a_system_does_not_have_stays_unknown_and_counts_stay_whole() -> None:
    (middle,) = medians([row("etcd", 1, 1.0), row("etcd", 1, 2.0)])
    assert middle.envelopes is None
    (middle,) = medians([row("ordercast", 1, 1.0, envelopes=3), row("ordercast", 1, 2.0, envelopes=6)])
    assert (middle.envelopes, type(middle.envelopes)) == (4, int)


# ----------------------------------------------------------------------------------------------------- goals


def test_a_run_that_reaches_everything_meets_all_goals() -> None:
    judged = [*judge(ROWS, PLAN), *of_replays(REPLAYS)]
    assert len(judged) == 25
    assert [goal.goal for goal in judged if not goal.met] == []


def test_a_goal_tells_what_was_aimed_at_and_what_part_of_the_peers_figure_was_reached() -> None:
    goal = goals(ROWS)["1,024 in flight: messages/s, 5 x etcd's"]
    assert (goal.target, goal.reached, goal.ratio, goal.met) == (5 * 4_497, 110_000, 24.461, True)
    goal = goals(ROWS)["1 in flight: p50 ms, at most 3 x etcd's"]
    assert (goal.target, goal.reached, goal.ratio, goal.met) == (4.2, 2.5, 1.786, True)


@pytest.mark.parametrize(
    ("case", "change", "missed"),
    [
        (("ordercast", "same", 1024), {"messages_per_second": 22_000}, "1,024 in flight: messages/s, 5 x etcd's"),
        (("nats", "same", 1024), {"messages_per_second": 110_001}, "1,024 in flight: messages/s, ahead of NATS"),
        (("etcd", "same", 64), {"messages_per_second": 6_501}, "64 in flight: messages/s, 2 x etcd's"),
        (("ordercast", "same", 64), {"p99_ms": 41.1}, "64 in flight: p99 ms, not above etcd's"),
        (("ordercast", "same", 1), {"p50_ms": 4.3}, "1 in flight: p50 ms, at most 3 x etcd's"),
        (
            ("ordercast", "same", 1024),
            {"server_cpu_s_per_10k": 2.7},
            "1,024 in flight: server CPU s/10k, not above etcd's",
        ),
        (
            ("ordercast", "groups-64", 1024),
            {"messages_per_second": 19_999},
            "groups-64: messages/s, half of groups-1",
        ),
        (("ordercast", "random-64", 1024), {"messages_per_second": 7_999}, "random-64: messages/s, 2 x etcd's"),
        (("ordercast", "random-64", 1024), {"messages_per_second": 15_999}, "random-64: messages/s, 4 x etcd's"),
        (
            ("etcd", "random-64", 1024),
            {"server_cpu_s_per_10k": 1.39},
            "random-64: server CPU s/10k, half of etcd's",
        ),
        (("etcd", "random-8", 1024), {"messages_per_second": 9_001}, "random-8: messages/s, 2 x etcd's"),
        (("ordercast", "random-1", 1024), {"messages_per_second": 15_999}, "random-1: messages/s, 4 x etcd's"),
        (("ordercast", "random-1", 1024), {"messages_per_second": 39_999}, "random-1: messages/s, 10 x etcd's"),
    ],
)
def test_a_goal_is_missed_when_its_figure_is_worse(
    case: tuple[str, str, int], change: dict[str, float], missed: str
) -> None:
    rows = [replace(one, **change) if one.case == case else one for one in ROWS]  # type: ignore[arg-type]
    assert goals(rows)[missed].met is False


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    without_etcd = [one for one in ROWS if one.system != "etcd"]
    goal = goals(without_etcd)["1,024 in flight: messages/s, 5 x etcd's"]
    assert (goal.target, goal.reached, goal.ratio, goal.met) == (None, 110_000, None, None)
    assert goals(without_etcd)["1,024 in flight: messages/s, ahead of NATS"].met is True
    assert {goal.met for goal in [*judge([], PLAN), *of_replays([])]} == {None}


def test_goals_are_about_two_groups_of_three_replicas_on_three_nodes_only() -> None:
    other = goals(ROWS, plan=replace(PLAN, groups=1))
    assert {goal.met for goal in other.values() if "in flight" in goal.goal} == {None}


def test_a_short_log_says_nothing_about_memory() -> None:
    shorter = [replace(replay, messages=replay.messages // 2) for replay in REPLAYS]
    memory = [goal for goal in of_replays(shorter) if goal.goal.startswith("RssAnon")]
    assert [goal.met for goal in memory] == [None, None]


@pytest.mark.parametrize(
    ("after_mb", "is_small", "is_flat"), [(72.0, True, True), (72.2, True, False), (121.0, False, False)]
)
def test_memory_has_to_be_small_and_flat(after_mb: float, is_small: bool, is_flat: bool) -> None:
    replays = [REPLAYS[0], replace(REPLAYS[1], rss_anon_mb=[1.0, after_mb])]
    judged = {goal.goal: goal.met for goal in of_replays(replays)}
    assert judged["RssAnon MB after 1,000,000 messages, at most 120"] is is_small
    assert judged["RssAnon MB after 1,000,000 messages, flat since half of them"] is is_flat


# ------------------------------------------------------------------------------------------- agenda, patterns


def test_alone_each_row_has_a_cluster_and_beside_peers_each_system_has_one() -> None:
    alone = Agenda(PLAN, ("same", "random"), (1, 64))
    assert [(t.system, t.pattern, t.depths) for t in alone.trials()] == [
        ("ordercast", "same", (1,)),
        ("ordercast", "same", (64,)),
        ("ordercast", "random", (1,)),
        ("ordercast", "random", (64,)),
    ]
    beside = Agenda(PLAN, ("same", "groups-1", "groups-64"), (1, 64), ("etcd", "nats"))
    assert [(t.system, t.pattern, t.depths) for t in beside.trials()] == [
        ("ordercast", "same", (1, 64)),
        ("etcd", "same", (1, 64)),
        ("nats", "same", (1, 64)),
        ("ordercast", "groups-1", (1024,)),
        ("ordercast", "groups-64", (1024,)),
    ]
    random = Agenda(PLAN, ("random-8",), (1, 64), ("etcd", "nats"))
    assert [(t.system, t.pattern, t.depths) for t in random.trials()] == [
        ("ordercast", "random-8", (1024,)),
        ("etcd", "random-8", (1024,)),
    ]


def test_repetitions_are_interleaved_and_begin_with_different_systems() -> None:
    agenda = Agenda(PLAN, ("same",), (1,), ("etcd", "nats"), repetitions=3)
    order = [(repetition, trial.system) for repetition, trial in agenda.interleaved()]
    assert [system for _, system in order[::3]] == ["ordercast", "etcd", "nats"]
    for repetition, turns in itertools.groupby(order, key=lambda turn: turn[0]):
        assert sorted(turns) == [(repetition, "etcd"), (repetition, "nats"), (repetition, "ordercast")]
    assert rotated([BenchTrial("etcd", "same", (1,))], 5) == [BenchTrial("etcd", "same", (1,))]


def test_patterns_say_who_publishes_where() -> None:
    same = pattern_named("same", PLAN)
    assert (same.groups, same.sets, len(same.sets[0][0])) == (("g0", "g1"), ((("g0", "g1"),),), 2)
    many = pattern_named("groups-64", PLAN)
    assert (len(many.groups), len(many.sets), len(many.sets[0][0])) == (64, 64, 1)
    assert many.sets[7] == (("g7",),)
    random = pattern_named("random", replace(PLAN, groups=1))
    assert len(random.groups) == 2
    assert {len(groups) for sets in random.sets for groups in sets} == {1}


@pytest.mark.parametrize(("name", "producers", "connections"), [("random-64", 64, 64), ("random-8", 64, 8)])
def test_random_sets_are_of_several_sizes_and_the_same_each_time(
    name: str, producers: int, connections: int
) -> None:
    pattern = pattern_named(name, PLAN)
    assert pattern == pattern_named(name, PLAN)
    assert (len(pattern.groups), len(pattern.sets), pattern.depths((1, 64))) == (12, producers, (1024,))
    assert len(set(pattern.sets)) == producers, "no producer does what another one does"
    for sets in pattern.sets:
        sizes = [len(set(groups)) for groups in sets]
        assert {sizes.count(size) > len(sizes) / 4 for size in (1, 2, 3)} == {True}
        assert {group for groups in sets for group in groups} == set(pattern.groups)
    shared = pattern.by_connection(producers)
    assert [len(numbers) for numbers in shared] == [producers // connections] * connections
    assert sorted(number for numbers in shared for number in numbers) == list(range(producers))


def test_producers_have_a_connection_each_where_the_pattern_says_nothing() -> None:
    assert pattern_named("groups-64", PLAN).by_connection(3) == [[0], [1], [2]]
    assert pattern_named("random-8", PLAN).by_connection(2) == [[0], [1]]


def test_a_meter_counts_while_it_is_on_and_failures_are_no_messages() -> None:
    meter = Meter()
    meter.answered(0.0)
    meter.refused(OSError("early"))
    meter.is_on = True
    meter.answered(0.0)
    meter.refused(OSError("late"))
    assert (meter.count, meter.failed, meter.acknowledged, len(meter.latencies)) == (1, 1, 2, 1)
    meter.latencies = [number / 1000 for number in range(100, 0, -1)]
    assert (meter.percentile_ms(0.50), meter.percentile_ms(0.99)) == (51.0, 100.0)


def test_a_profile_is_summed_by_stage_and_the_rest_is_the_runtimes() -> None:
    spent = {"cpu_s": 4.0, "spent": {"sequencer RecTs": [10, 1.0], "gateway PublishRequest": [5, 0.5]}}
    stages = {stage["stage"]: stage for stage in cpu_profile.by_stage([spent, spent])}
    assert stages["timestamps"] == {"stage": "timestamps", "events": 20, "cpu_s": 2.0, "share": 0.25}
    assert stages["runtime"]["cpu_s"] == 5.0


# ------------------------------------------------------------------------------ while a replica is replaced


def stretch(seconds: float, count: int, gap_s: float, failed: int = 0) -> Stretch:
    return Stretch(seconds, gap_s, failed, array("d", [0.02] * count))


def replaced() -> list[dict[str, Any]]:
    """Two changes: the first leaves three quarters of the throughput, the second a third of the rest."""
    stretches = [stretch(10.0, 1000, 0.1)]
    stretches += [stretch(5.0, 400, 0.2), stretch(1.0, 50, 0.6), stretch(10.0, 900, 0.1)]
    stretches += [stretch(5.0, 170, 0.2), stretch(1.0, 10, 0.7, failed=2), stretch(10.0, 800, 0.1)]
    changes = [
        during.ReplacedReplica("node-3", "node-4", False, 2000, 3_000_000),
        during.ReplacedReplica("node-1", "node-3", True),
    ]
    return during.entries_of(changes, SteadyOutcome(stretches, 3330), [0.0, 1.0, 2.0, 2.5, 4.0, 5.0, 6.0, 7.0])


def test_a_gap_between_receipts_counts_where_it_ends_and_the_warm_up_nowhere() -> None:
    timeline = Timeline(0.0)
    timeline.answered_at(0.0, 5.0)
    timeline.begin(6.0)
    timeline.answered_at(6.5, 7.0)
    timeline.answered_at(6.5, 7.5)
    timeline.begin(8.0)
    timeline.refused(OSError("late"))
    timeline.end(11.0)
    first, second = timeline.stretches
    assert (first.seconds, first.gap_s_max, list(first.latencies), first.failed) == (2.0, 2.0, [0.5, 1.0], 0)
    # Nothing came any more: the silence until the end is a gap.
    assert (second.seconds, second.gap_s_max, list(second.latencies), second.failed) == (3.0, 3.5, [], 1)
    assert timeline.acknowledged == 3


def test_stretches_that_follow_one_another_are_joined_to_one() -> None:
    whole = joined([stretch(3.0, 30, 0.1, failed=1), stretch(1.0, 2, 0.9)])
    assert (whole.seconds, whole.gap_s_max, whole.failed, whole.messages_per_second) == (4.0, 0.9, 1, 8.0)
    assert (joined([]).messages_per_second, joined([]).percentile_ms(0.99)) == (0.0, 0.0)


def test_a_change_is_told_with_what_was_before_during_and_after() -> None:
    first, second = replaced()
    assert [phase["phase"] for phase in first["phases"]] == ["before", "during", "after"]
    assert [phase["messages_per_second"] for phase in first["phases"]] == [100.0, 75.0, 90.0]
    assert [phase["server_cpu_s_per_10k"] for phase in first["phases"]] == [10.0, 33.333, 16.667]
    assert (first["change_s"], first["copying_s"], first["switching_s"]) == (6.0, 5.0, 1.0)
    assert (first["copying_gap_s_max"], first["switching_gap_s_max"]) == (0.2, 0.6)
    assert (first["ratio"], second["ratio"]) == (0.75, 0.333)
    # What is after the first is before the second.
    assert second["phases"][0] == {**first["phases"][2], "phase": "before"}


def test_half_of_the_throughput_has_to_be_left_while_a_replica_is_replaced() -> None:
    first, second = map(during.goal_of, replaced())
    assert (first.target, first.reached, first.ratio, first.met) == (50.0, 75.0, 0.75, True)
    assert (second.target, second.reached, second.ratio, second.met) == (45.0, 30.0, 0.333, False)
    assert "the gateway's" in second.goal


def test_replicas_that_disagree_or_lack_messages_are_no_good_end() -> None:
    assert during.Verified(10, 0).is_ok
    assert not during.Verified(10, 1).is_ok
    assert not during.Verified(10, 0, ["node-2 has 3 of 4 envelopes"], 1).is_ok


# ------------------------------------------------------------------ a domain of virtually synchronous groups

CASTING = replace(PLAN, protocol="isis", ordering="causal")
HALF = "1 in flight, one group: p50 ms of CBCAST, half of SCALATOM's"


def in_turns(cbcast_ms: float, scalatom_ms: float = 4.0) -> list[BenchRow]:
    return [
        row("ordercast", 1, 100.0, pattern="one", p50_ms=cbcast_ms),
        row("scalatom", 1, 100.0, pattern="one", p50_ms=scalatom_ms),
    ]


def test_another_protocol_takes_turns_with_the_first_one() -> None:
    agenda = Agenda(CASTING, ("same", "groups-1", "groups-64"), (1, 64), ("etcd",))
    assert [(trial.system, trial.pattern, trial.beside) for trial in agenda.trials()] == [
        ("ordercast", "same", ""),
        ("etcd", "same", ""),
        ("ordercast", "groups-1", ""),
        ("ordercast", "groups-64", ""),
        ("ordercast", "one", "scalatom"),
    ]
    assert pattern_named("one", CASTING).sets == ((("g0",),),)


@pytest.mark.parametrize(("cbcast_ms", "is_met"), [(2.0, True), (2.1, False)])
def test_a_cbcast_shall_take_half_as_long_as_scalatom(cbcast_ms: float, is_met: bool) -> None:
    goal = goals(in_turns(cbcast_ms), plan=CASTING)[HALF]
    assert (goal.target, goal.reached, goal.met) == (2.0, cbcast_ms, is_met)


def test_the_goal_of_a_cbcast_is_for_one_group_of_three_replicas_however_many_the_others_are_for() -> None:
    assert goals(in_turns(1.0), plan=replace(CASTING, groups=1))[HALF].met is True
    assert goals(in_turns(1.0), plan=replace(CASTING, replicas=1))[HALF].met is None
    assert goals(ROWS, plan=CASTING)[HALF].met is None, "not measured"
    assert HALF not in goals(in_turns(1.0), plan=replace(CASTING, ordering="total"))
    assert HALF not in goals(in_turns(1.0))


def test_the_rows_in_turns_change_no_other_goal() -> None:
    others = [goal for name, goal in goals([*ROWS, *in_turns(1.0)], plan=CASTING).items() if name != HALF]
    assert others == list(goals(ROWS).values())


def test_turns_add_up_and_their_rests_cost_processor_time_only() -> None:
    both = Turns()
    both.add(0.25, Used(0.28, 0.1, 0.01, 40.0))
    both.add(0.25, Used(0.28, 0.3, 0.02, 39.0))
    assert both.used.elapsed_s == 0.5
    assert (round(both.used.server_s, 6), round(both.used.client_s, 6)) == (0.4, 0.03)
    assert both.used.rss_anon_mb_max == 40.0


def test_tables_and_files_say_which_protocol_it_was() -> None:
    (same,) = table.rows_tables([row("ordercast", 1, 1.0)], CASTING.protocol_text)
    assert "same, ordercast with isis causal" in printed(same)
    assert prefix_of(PLAN) == ""
    assert prefix_of(CASTING) == "isis-causal-"


def cast_marks() -> list[Marks]:
    """n1 has the client's gateway, n2 casts in the first group, and n3 in the second."""
    n1: Marks = {"submit": (0.125, 0.25), "answered": (2.0, 2.0)}
    n2: Marks = {"submitted": (0.5, 0.5), "cast": (0.75, 0.75)}
    return [n1, n2, {"part cast": (1.25, 1.25)}]


def test_the_stages_of_a_cast_add_up() -> None:
    way = cast_stages.way_of(2.5, cast_marks())
    assert way is not None
    assert list(way.spent_s().values()) == [0.625, 0.125, 0.25, 0.25, 0.5, 0.75]
    entries = stages.entries_of(1, [way])
    assert [entry["stage"] for entry in entries] == [*cast_stages.STAGES, stages.TOTAL]
    assert not any("implied_share" in entry for entry in entries)


def test_a_cast_to_one_group_goes_to_no_others() -> None:
    way = cast_stages.way_of(2.5, cast_marks()[:2])
    assert way is not None
    assert way.spent_s()["to the other groups"] == 0.0


@pytest.mark.parametrize("index", [0, 1])
def test_a_cast_that_somebody_has_forgotten_is_left_out(index: int) -> None:
    assert cast_stages.way_of(2.5, [{}, *cast_marks()[:index], *cast_marks()[index + 1 :]]) is None


# --------------------------------------------------------------------------- casts by their destinations


def curve(times: float) -> curves.Curve:
    columns = ("null_ms", "1k_ms", "7k_ms", "null_per_s", "1k_per_s", "7k_per_s", "7k_kb_per_s")
    return {count: dict.fromkeys(columns, times * count) for count in range(1, 7)}


def described(*holders: str) -> DescribeGroupResponse:
    found = DescribeGroupResponse()
    found.group.replicas.extend(["n1", "n2", "n3"])
    for holder in holders:
        found.replicas.add().log.orderer = holder
    return found


def test_abcasts_are_sent_by_a_member_that_no_replica_takes_for_the_token_holder() -> None:
    assert curves.sender_for("g", described("n1", "n1", "n1"), is_total=True) == "n2"
    assert curves.sender_for("g", described("n1", "n2", "n1"), is_total=True) == "n3"
    assert curves.sender_for("g", described("n1"), is_total=False) == "n1"
    with pytest.raises(BenchError, match="does not hold the token"):
        curves.sender_for("g", described("n1", "n2", "n3"), is_total=True)


def test_curves_are_saved_with_their_picture_and_the_same_figures_give_the_same_files(tmp_path: Path) -> None:
    need_matplotlib()
    found = curves.Curves("isis", curve(1.0), curve(2.0), 2.0, MACHINE)
    published = {"cbcast": {0: {}, **curve(3.0)}, "abcast": curve(4.0)}
    for name in ("first", "second"):
        save_curves(found, published, tmp_path / name)
    for name in ("isis-tables.json", "isis-tables.svg"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    document = json.loads((tmp_path / "first" / "isis-tables.json").read_text())
    assert document["abcast"]["6"]["null_ms"] == 12.0
    assert document["settings"]["abcast"]["ordering"] == "total"
    draw_curves(replace(found, abcast=curve(5.0)), published, tmp_path / "other.svg")
    assert (tmp_path / "other.svg").read_bytes() != (tmp_path / "first" / "isis-tables.svg").read_bytes()


# -------------------------------------------------------------------------------------------- for people


def printed(*things: Any) -> str:
    console = Console(file=io.StringIO(), width=80)
    for thing in things:
        console.print(thing)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_table_has_systems_side_by_side_for_each_depth_in_80_columns() -> None:
    (same, *_) = table.rows_tables(ROWS)
    words = [line.split() for line in printed(same).splitlines()]
    figures = [line for line in words if line and line[-1] == "40"]
    # The depth stands only in front of the first system.
    assert [line[:2] for line in figures[:3]] == [["1", "ordercast"], ["etcd", "657"], ["nats", "803"]]
    assert ["1,024", "ordercast", "110,000", "0%", "2", "4", "0.2", "0.5", "40"] in figures
    assert "…" not in printed(same)


def test_failures_are_told() -> None:
    (same,) = table.rows_tables([row("nats", 64, 11_820.0, failed=3)])
    assert "nats, 3 failed" in printed(same)


def test_envelopes_are_told_of_our_own_rows_only() -> None:
    rows = [replace(one, server_cpu_ms_per_envelope=1.5) for one in ROWS]
    text = printed(table.envelopes_table(rows))
    assert [line.split()[0] for line in text.splitlines() if line.endswith(" 1.50")] == ["groups-1", "groups-64"]


def test_what_telemetry_costs_is_told_beside_what_is_there_without_it() -> None:
    turns = {"off": [1.0, 2.0, 4.0], "1 %": [1.02, 2.0, 4.0], "100 %": [1.5, 3.0, 6.0]}
    off, few, all_ = telemetry_cost.entries_of(64, turns)
    assert (off["ratio"], few["ratio"], all_["ratio"]) == (1.0, 1.0, 1.5)
    assert all_["server_cpu_s_per_10k"] == 3.0
    text = " ".join(printed(table.telemetry_table([off, few, all_])).split())
    assert "64 100 % 3 3 1.5 to 6 1.500" in text
    (goal,) = of_telemetry([off, few, all_])
    assert goal.met
    (goal,) = of_telemetry([{**few, "ratio": 1.06}])
    assert goal.met is False


def test_what_an_overload_did_stands_in_a_line_for_each_phase() -> None:
    phase = {"phase": "overload", "offered_per_second": 600_000.0, "acknowledged_per_second": 55_000.0}
    phase |= {"goodput_ratio": 0.92, "refused_per_second": 15_000.0, "p99_ms": 950.0, "rss_anon_mb_max": 130.0}
    text = printed(table.overload_table([phase, {**phase, "phase": "after", "recovered_after_s": 1.3}]))
    assert "overload 600,000 55,000 92% 15,000 950 130" in " ".join(text.split())
    assert text.rstrip().endswith("1.3")


def test_what_a_change_did_stands_in_80_columns_with_a_line_for_each_phase() -> None:
    first, second = replaced()
    text = printed(table.change_table(first), table.change_table(second))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "node-3 is replaced by node-4" in lines
    assert "before 10 100 100% 20 20 0.1 10" in lines
    assert "during 6 75 75% 20 20 0.6 33.3" in lines
    assert "during, 2 failed 6 30 33% 20 20 0.7 111" in lines
    assert "…" not in text
    assert "copied 2,000 messages, 3 MB, in 5.0 s" in table.change_line(first)


def test_goals_have_a_check_mark_a_cross_or_neither() -> None:
    marks = [
        Goal("done", 1.0, 2.0, 2.0, True),
        Goal("not", 1.0, 0.5, 0.5, False),
        Goal("?", 1.0, None, None, None),
    ]
    lines = [line.split()[:2] for line in printed(table.goals_table(marks)).splitlines()]
    assert [line for line in lines if line and line[0] in "✓✗-"] == [["✓", "done"], ["✗", "not"], ["-", "?"]]


def need_matplotlib() -> None:
    lacking = missing([], is_plotted=True)
    if lacking:
        with (ROOT / ".left-out").open("a") as left_out:
            left_out.write("the picture of the bench: the extra `bench` is not installed\n")
        pytest.skip(f"not installed: {', '.join(lacking)}")


def test_the_same_figures_give_the_same_files(tmp_path: Path) -> None:
    need_matplotlib()
    save(result(ROWS), tmp_path / "first")
    save(result(ROWS), tmp_path / "second")
    for name in ("comparison.svg", "latest.json"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    save(result([row("ordercast", 1, 1.0)]), tmp_path / "other")
    assert (tmp_path / "first" / "comparison.svg").read_bytes() != (
        tmp_path / "other" / "comparison.svg"
    ).read_bytes()


def test_random_sets_have_a_panel_of_their_own_and_other_patterns_none(tmp_path: Path) -> None:
    need_matplotlib()
    sizes = {}
    for name, rows in {
        "both": ROWS,
        "same": [one for one in ROWS if one.pattern == "same"],
        "random": [one for one in ROWS if one.pattern.startswith("random-")],
        "none": [one for one in ROWS if one.pattern.startswith("groups-")],
    }.items():
        save(result(rows), tmp_path / name)
        picture = tmp_path / name / "comparison.svg"
        found = re.search(r'viewBox="0 0 ([0-9.]+) ', picture.read_text()) if picture.exists() else None
        sizes[name] = float(found[1]) if found else 0.0
    panel = sizes["random"]
    assert panel > 0
    assert {name: size / panel for name, size in sizes.items()} == pytest.approx(
        {"both": 3, "same": 2, "random": 1, "none": 0}
    )


def test_what_is_saved_is_the_whole_run(tmp_path: Path) -> None:
    need_matplotlib()
    save(result(ROWS), tmp_path)
    document = json.loads((tmp_path / "latest.json").read_text())
    assert list(document) == ["rows", "goals", "plan", "machine"]
    assert document["rows"][0]["system"] == "ordercast"
    assert document["plan"]["repetitions"] == 3
    assert document["machine"] == MACHINE


def test_each_kind_of_figures_has_a_file_of_its_own_beside_the_rows(tmp_path: Path) -> None:
    for plan in (PLAN, CASTING):
        save_report(BenchReport("overload", [{"phase": "peak"}], plan, machine=MACHINE), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["isis-causal-overload.json", "overload.json"]
    document = json.loads((tmp_path / "overload.json").read_text())
    assert list(document) == ["overload", "goals", "plan", "machine"]
    assert document["overload"] == [{"phase": "peak"}]
