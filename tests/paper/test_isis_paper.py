"""[BSS91] Birman, Schiper, Stephenson 1991: what the paper says that multicasts, views and timestamps cost.

Each test names the section whose figure it checks; counts are of real machines in runs that the checkers accept.
"""

import json

import pytest
from typer.testing import CliRunner

from ordercast.cli.main import app
from ordercast.protocols.isis.settings import FlushKind
from ordercast.sim.isis import papers as isis
from ordercast.sim.isis.papers import (
    BATCHES,
    Section,
    joining,
    leaving,
    many_groups,
    mean,
    moved_token,
    one_group,
    resting_token,
    stamped_share,
)
from ordercast.sim.paper import Figure


@pytest.mark.parametrize("k", range(1, 17))
def test_section_5_2_one_cbcast_and_a_kth_per_abcast_while_the_token_rests(k: int) -> None:
    multicasts = resting_token(k).multicasts
    assert multicasts["Cast"] == BATCHES * k
    assert multicasts["SetsOrder"] == BATCHES


def test_section_5_2_one_cbcast_per_abcast_of_the_token_holder() -> None:
    multicasts = resting_token(1, by_holder=True).multicasts
    assert multicasts["Cast"] == BATCHES
    assert "SetsOrder" not in multicasts


def test_section_5_2_one_cbcast_per_abcast_once_the_token_has_moved_to_the_sender() -> None:
    multicasts = moved_token().multicasts
    assert multicasts["Cast"] == 64
    assert "SetsOrder" not in multicasts


def test_a_cbcast_is_listed_for_the_log_and_one_list_does_for_k() -> None:
    for k in (1, 8):
        multicasts = resting_token(k, total=False).multicasts
        assert (multicasts["Cast"], multicasts["SetsOrder"]) == (BATCHES * k, BATCHES)


@pytest.mark.parametrize("n", [3, 4, 7, 12, 24])
def test_section_5_5_a_flush_of_everyone_to_everyone(n: int) -> None:
    """The paper's n^2, as nobody sends to itself. A newcomer has nothing to flush."""
    leaves, joins = leaving(n, FlushKind.ALL), joining(n - 1, FlushKind.ALL)
    assert leaves.of("Flush") == n * (n - 1)
    assert joins.of("Flush") == (n - 1) ** 2
    assert leaves.of("Cut", "Forward") == joins.of("Cut", "Forward") == 0


@pytest.mark.parametrize("n", [3, 4, 7, 12, 24])
def test_section_5_5_a_flush_with_a_coordinator_is_linear(n: int) -> None:
    """The paper's 2n, as nobody sends to itself."""
    leaves, joins = leaving(n, FlushKind.COORDINATOR), joining(n - 1, FlushKind.COORDINATOR)
    assert (leaves.of("Flush"), leaves.of("Cut")) == (n - 1, n - 1)
    assert (joins.of("Flush"), joins.of("Cut")) == (n - 2, n - 1)
    assert leaves.of("Forward") == joins.of("Forward") == 0


@pytest.mark.parametrize("kind", list(FlushKind))
def test_every_member_of_the_new_view_can_say_that_it_has_the_cut(kind: FlushKind) -> None:
    assert leaving(6, kind).acknowledgements == 5
    assert joining(6, kind).acknowledgements == 7


@pytest.mark.parametrize("n", [3, 6, 12, 24])
def test_section_7_4_three_n_messages_add_a_member(n: int) -> None:
    (row,) = isis.addition({n: joining(n, FlushKind.COORDINATOR, logged=1)}).rows
    assert row["sum"] == row["published_about"] == 3 * n


def test_all_that_is_sent_to_add_a_member_is_accounted_for() -> None:
    counts = {6: joining(6, FlushKind.COORDINATOR, logged=1)}
    (told,), (rest,) = isis.addition(counts).rows, isis.completion(counts).rows
    parts = [figure for name, figure in rest.items() if name != "n"]
    assert told["all"] == sum([told["sum"], *parts])  # type: ignore[list-item]


def test_a_newcomer_copies_the_log_before_the_view_is_defined() -> None:
    count = joining(3, FlushKind.COORDINATOR, logged=5)
    assert count.of("FetchLog") >= 1
    assert count.of("LogChunk") >= 1
    assert count.of("Forward") == 0, "all of it was stable"


def test_section_5_4_in_a_burst_only_the_first_cast_has_a_timestamp() -> None:
    count = one_group(4, 16)
    later = [size for index, size in enumerate(count.stamps) if index % 16]
    assert not any(later)
    assert 0 < mean(count.stamps) < mean(count.stamps_in_full) < 4 * 64 + 40


def test_section_5_4_compression_saves_nothing_where_every_field_has_changed() -> None:
    count = one_group(4, 1)
    assert count.stamps == count.stamps_in_full
    assert mean(count.stamps) < 4 * 64 + 40, "members that never cast have no field"


def test_section_6_3_bursts_make_timestamps_of_other_groups_rare() -> None:
    counts = {burst: many_groups(burst) for burst in (1, 4, 16)}
    for burst, count in counts.items():
        assert stamped_share(count) <= 1 / burst
        assert mean(count.stamps) < mean(count.stamps_in_full)
    assert mean(counts[1].stamps) > mean(counts[4].stamps) > mean(counts[16].stamps)


def test_section_8_the_published_curves_say_what_the_text_says_of_them() -> None:
    """ABCAST at about half the speed of CBCAST for small messages, and both about linear in the destinations."""
    for destinations in range(1, 8):
        cbcast, abcast = isis.CBCAST[destinations], isis.ABCAST[destinations]
        assert 1.9 < abcast[0] / cbcast[0] < 2.5
    for table in (isis.CBCAST, isis.ABCAST):
        replies = [table[destinations][0] for destinations in range(1, 8)]
        assert replies == sorted(replies)


def test_section_8_figures_of_ours_stand_beside_the_published_ones_and_are_never_made_up() -> None:
    alone = isis.published_times("t", isis.CBCAST)
    assert not any(name.startswith("ours") for row in alone.rows for name in row)
    beside = isis.published_times("t", isis.CBCAST, {1: {"null_ms": 0.5}})
    one, two = beside.rows[1], beside.rows[2]
    assert (one["null_ms"], one["ours_null_ms"], one["ours_1k_ms"]) == (6.51, 0.5, None)
    assert two["ours_null_ms"] is None


def test_the_sections_put_what_is_published_beside_what_is_measured() -> None:
    tokens = isis.abcast(ks=(1, 2, 3)).rows
    assert all(row["published"] == row["measured"] for row in tokens if str(row["what"]).startswith("ABCAST"))
    for kind in FlushKind:
        (row,) = isis.flush(kind, ns=(5,)).rows
        assert row["one_leaves"] == row["none_to_itself"]


def test_the_command_prints_rows_as_for_every_paper_or_one_table_each(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, Figure]] = [
        {"n": 3, "published": 2, "measured": 1.5, "sum": 7},
        {"n": 4, "published": 3, "measured": None, "sum": 8},
    ]
    few = {"some_figures": Section("Some [5.2]", rows, ("n",), {"measured": "published"})}
    monkeypatch.setattr(isis, "sections", lambda: few)
    as_json = CliRunner().invoke(app, ["papers", "isis", "--json"])
    assert as_json.exit_code == 0
    assert json.loads(as_json.stdout) == [
        {"what": "some figures, n = 3", "published": 2, "measured": 1.5},
        {"what": "some figures, n = 3: sum", "published": None, "measured": 7},
        {"what": "some figures, n = 4", "published": 3, "measured": None},
        {"what": "some figures, n = 4: sum", "published": None, "measured": 8},
    ]
    as_table = CliRunner().invoke(app, ["papers", "isis"])
    assert as_table.exit_code == 0
    assert "Some [5.2]" in as_table.stdout
    assert "None" not in as_table.stdout
