"""The report: on a terminal, as a page, and as JSON; and the metrics that come from the same tables."""

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from ordercast.analytics.errors import AnalyticsError
from ordercast.analytics.prometheus import LABELS_MAX, OTHER, Results
from ordercast.analytics.report.page import page
from ordercast.analytics.report.summary import Span, Summary, summary, time_from
from ordercast.analytics.report.terminal import show
from ordercast.analytics.tables import Tables, read_file
from ordercast.cli.main import app
from tests.analytics.planted import Planted

VOID = {"meta", "line", "rect", "circle", "polyline", "br"}


@pytest.fixture(scope="module")
def told(run: Planted) -> Summary:
    return summary(run.tables, Span())


def test_the_summary_names_the_planted_blocker_and_straggler_first(told: Summary):
    assert told.blockers[0].name == "replica:n3"
    assert told.replicas[0].node == "n3"
    clocks = {replica.node: replica.clock for replica in told.replicas}
    assert clocks["n2"] == pytest.approx(0.04, abs=0.002)


def test_the_terminal_shows_every_part_and_the_verdict(told: Summary):
    console = Console(width=160, record=True, file=io.StringIO())
    show(told, console)
    text = console.export_text()
    for words in ("Order lag", "Stages", "What others waited for", "Replicas", "Unavailable", "Dead letters"):
        assert words in text
    assert "Order was broken, or telemetry lies: " in text


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order; and what is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in VOID or (tag in ("circle", "polyline")):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing(told: Summary):
    text = page(told)
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert parser.loaded == []
    assert not re.search(r"https?://|@import|url\(", text)
    assert "<script" not in text
    assert "replica:n3" in text
    assert told.audit.findings[0]["trace"] in text


def test_names_cannot_put_markup_into_the_page(told: Summary):
    told.blockers[0].name, kept = "<b>replica</b>", told.blockers[0].name
    text = page(told)
    told.blockers[0].name = kept
    assert "<b>replica</b>" not in text
    assert "&lt;b&gt;replica&lt;/b&gt;" in text


def test_the_command_ends_with_1_if_order_was_broken_and_writes_what_was_asked_for(run: Planted, tmp_path: Path):
    runner = CliRunner()
    folder = str(run.tables.folder)
    printed = runner.invoke(app, ["analytics", "report", "--output", folder, "--json"])
    assert printed.exit_code == 1
    document = json.loads(printed.stdout)
    assert document["audit"]["violations"] == len(document["audit"]["findings"])
    file = tmp_path / "report.html"
    written = runner.invoke(app, ["analytics", "report", "--output", folder, "--html", str(file)])
    assert written.exit_code == 1
    assert file.read_text().startswith("<!doctype html>")


def test_a_time_range_leaves_out_what_is_outside_of_it(run: Planted, told: Summary):
    middle = told.since + (told.until - told.since) / 2
    early = summary(run.tables, Span(until=middle))
    assert early.until <= middle < told.until
    with pytest.raises(AnalyticsError, match="no deliveries in that time range"):
        summary(run.tables, Span(since=time_from("2031-01-01")))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "--output", "/no/such/folder"], "holds no tables"),
        (["report", "--from", "yesterday"], "a time is like"),
        (["run", "--source", "pigeon"], "spool` or `kafka"),
        (["run", "--topic", "x"], "--topic is for"),
        (["run", "--source", "kafka", "--partitions", "3"], "--partitions is for"),
        (["bench", "--partitions", "0"], "numbers above 0"),
    ],
)
def test_wrong_usage_is_said(arguments: list[str], words: str):
    result = CliRunner().invoke(app, ["analytics", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code in (2, 3)
    assert words in result.stderr


def samples(results: Results, name: str) -> dict[tuple[str, ...], float]:
    found = {}
    for family in results.registry.collect():
        for sample in family.samples:
            if sample.name == name:
                found[tuple(sample.labels.values())] = sample.value
    return found


def test_metrics_are_of_the_tables(run: Planted):
    results = Results()
    for name in ("lag", "spread", "blockers", "audit", "unavailability", "dead_letters"):
        for path in [*run.tables.files(name), *run.tables.open_path(name).rglob("*.parquet")]:
            results.add(name, read_file(path).to_pylist())
    assert samples(results, "ordercast_analytics_violations_total")[("order",)] == 2
    assert samples(results, "ordercast_analytics_violations_total")[("gap",)] == 2
    assert samples(results, "ordercast_analytics_unavailable_seconds_total") == {("default", "d"): 6.0}
    assert samples(results, "ordercast_analytics_dead_letters_total")[("malformed OTLP",)] == 1
    straggling = samples(results, "ordercast_analytics_straggling_seconds")
    assert straggling[("n3",)] > 10 * straggling[("n1",)]
    blocked = samples(results, "ordercast_analytics_blocked_seconds")
    assert {blocker for _, _, blocker in blocked} == {"replica:n3", "message"}
    assert ("default", "a", "0.99") in samples(results, "ordercast_analytics_lag_seconds")


def test_a_restarted_job_goes_on_counting_where_the_tables_are(run: Planted):
    results = Results()
    results.begin(run.tables)
    # Those that were told at once; gaps were still waiting when the run ended.
    assert samples(results, "ordercast_analytics_violations_total")[("order",)] == 2


def test_groups_beyond_the_limit_are_told_together():
    results = Results()
    rows = [
        {"measure": "delivery", "domain": "d", "group": f"g{at}", "window_end": 1}
        | {"p50": 1.0, "p95": 1.0, "p99": 1.0, "max": float(at)}
        for at in range(LABELS_MAX + 50)
    ]
    results.add("lag", rows)
    groups = {group for _, group, _ in samples(results, "ordercast_analytics_lag_seconds")}
    assert len(groups) == LABELS_MAX + 1
    assert samples(results, "ordercast_analytics_lag_seconds")[("d", OTHER, "1")] == LABELS_MAX + 49


def test_tables_without_a_file_are_empty(tmp_path: Path):
    assert Tables(tmp_path).read("lag") is None
    assert Tables(tmp_path).files("lag") == []
