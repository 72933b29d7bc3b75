"""The schema of telemetry fits together, and what is made from it is current."""

import copy
import tomllib
from typing import Any

import pytest

from ordercast.telemetry.schema import names
from ordercast.telemetry.schema.generate import NAMES, PAGE, constant, main
from ordercast.telemetry.schema.model import FOLDER, SchemaError, load, made_from

FILES = {path.stem: tomllib.loads(path.read_text()) for path in FOLDER.glob("*.toml")}


def test_names_and_page_are_what_the_schema_makes(tmp_path):
    main(tmp_path / "names.py", tmp_path / "page.md")
    assert (tmp_path / "names.py").read_text() == NAMES.read_text(), "run `make schema`"
    assert (tmp_path / "page.md").read_text() == PAGE.read_text(), "run `make schema`"


def test_constants_are_the_names():
    assert names.METRIC_PUBLISH_DURATION == "ordercast.publish.duration"
    assert constant("messaging.batch.message_count", "ATTRIBUTE") == "ATTRIBUTE_MESSAGING_BATCH_MESSAGE_COUNT"


def test_names_for_prometheus_end_in_their_unit_and_counters_in_total():
    metrics = load().metrics
    assert metrics[names.METRIC_PUBLISH_DURATION].prometheus == "ordercast_publish_duration_seconds"
    assert metrics[names.METRIC_PUBLISH_MESSAGES].prometheus == "ordercast_publish_messages_total"
    assert metrics[names.METRIC_STORAGE_FREE].prometheus == "ordercast_storage_free_bytes"
    assert (
        metrics[names.METRIC_ANALYTICS_UNAVAILABLE].prometheus == "ordercast_analytics_unavailable_seconds_total"
    )
    known = [metric.prometheus for metric in metrics.values()]
    assert len(set(known)) == len(known)


def test_attributes_with_a_column_are_columns_and_the_map_of_the_rest_is_last():
    schema = load()
    assert schema.columns["group"].attribute == names.ATTRIBUTE_GROUP
    assert list(schema.columns)[-1] == "attributes"
    assert schema.columns["position"].type == "int64"


@pytest.mark.parametrize(
    ("file", "entry", "change", "words"),
    [
        ("attributes", "attribute", {"type": "colour"}, "no type colour"),
        ("spans", "span", {"emitter": "nobody"}, "no emitter nobody"),
        ("spans", "span", {"attributes": ["ordercast.colour"]}, "no attribute ordercast.colour"),
        ("metrics", "metric", {"instrument": "drum"}, "no instrument drum"),
        ("metrics", "metric", {"unit": "furlong"}, "no unit furlong"),
        ("metrics", "metric", {"unit": "1"}, "no buckets for 1"),
        ("metrics", "metric", {"instrument": "gauge"}, "only histograms have exemplars"),
        ("metrics", "metric", {"attributes": ["ordercast.envelope.id"]}, "is no label"),
        ("metrics", "metric", {"name": "ordercast.publish.messages"}, "twice"),
        ("attributes", "attribute", {"column": "offset"}, "twice"),
    ],
)
def test_what_does_not_fit_together_is_refused(file: str, entry: str, change: dict[str, Any], words: str):
    files = copy.deepcopy(FILES)
    files[file][entry][0] |= change
    with pytest.raises(SchemaError, match=words):
        made_from(files)
