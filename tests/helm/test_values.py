"""Values are documented line by line, and the schema knows all of them and nothing else."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from deploy.kubernetes import readme
from deploy.kubernetes.rendering import CHART, ROOT
from deploy.kubernetes.values import values_of
from ordercast.runtime.process.settings import Settable
from ordercast.telemetry.settings import Settable as TelemetrySettable
from tests.helm.chart import refusal

TEXT = (CHART / "values.yaml").read_text()
VALUES: dict[str, Any] = yaml.safe_load(TEXT)
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())

#: Of Helm's own.
NOT_OURS = {"global"}
#: Maps with names that nobody knows before, and what Kubernetes checks.
OPEN = {"global", "texts", "kubernetesList.items", "quantities", "protocolSettings"}
#: Of processes, that the chart decides; or for tests alone: `extraEnv` can set them.
SET_BY_THE_CHART = {
    *("name", "zone", "data", "peer_listen", "peer_advertise", "frames_port", "client_listen"),
    *("client_advertise", "membership", "tls", "kubernetes", "telemetry.endpoint", "telemetry.service_name"),
    "telemetry.metrics_listen",
    *("profile", "stages", "fault_injection", "wall_offset_s"),
    "insecure",
}
SET_BY_THE_CHART_OF_TELEMETRY = {"name", "listen", "metrics_listen", "sink", "data", "kafka", "tls", "insecure"}


# --- The text


def test_every_value_says_what_it_is():
    assert [value.path for value in values_of(TEXT) if value.default is not None and not value.meaning] == []


def test_every_value_is_found_in_the_text():
    def leaves(values: Mapping[str, Any], above: str = "") -> Iterator[str]:
        for name, value in values.items():
            if isinstance(value, dict) and value and f"{above}{name}" not in described:
                yield from leaves(value, f"{above}{name}.")
            else:
                yield f"{above}{name}"

    described = {value.path for value in values_of(TEXT) if value.default is not None}
    assert set(leaves(VALUES)) == described


def test_a_value_without_a_word_is_caught():
    (first, second) = values_of("# Something.\na: 1\nb: 2\n")
    assert (first.meaning, second.meaning) == ("Something.", "")


def test_the_table_in_the_readme_is_that_of_the_values():
    text = readme.README.read_text()
    assert readme.current(text) == text, "run `make helm`"


def test_a_readme_that_is_behind_is_caught():
    text = readme.README.read_text()
    assert readme.current(text.replace("| `preStopSeconds` | `5` |", "| `preStopSeconds` | `6` |")) == text


def test_the_version_of_the_image_is_that_of_the_project():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert f'\nversion = "{chart["appVersion"]}"\n' in (ROOT / "pyproject.toml").read_text()


# --- The schema


def schemas(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every schema in it, by its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}" if path else name)
    if isinstance(schema.get("items"), dict):
        yield from schemas(schema["items"], f"{path}.items")


def all_schemas() -> dict[str, Mapping[str, Any]]:
    found = dict(schemas(SCHEMA, ""))
    for name, inner in SCHEMA["definitions"].items():
        found |= dict(schemas(inner, name))
    return found


def test_a_map_is_closed_unless_its_names_are_somebody_else_s():
    maps = {path: each for path, each in all_schemas().items() if each.get("type") == "object"}
    assert len(maps) > 30
    assert {path for path, each in maps.items() if each.get("additionalProperties") is not False} == OPEN


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in schema:
        found: Mapping[str, Any] = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
        return found
    return schema


def differences(values: Mapping[str, Any], schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Values that the schema does not know, and what it knows and is no value."""
    known = resolved(schema).get("properties", {})
    for name in sorted(values.keys() ^ (known.keys() - NOT_OURS)):
        yield f"{path}{name}"
    for name, value in values.items():
        if isinstance(value, dict) and value and "properties" in resolved(known.get(name, {})):
            yield from differences(value, known[name], f"{path}{name}.")


def test_the_schema_knows_the_values_and_nothing_else():
    assert list(differences(VALUES, SCHEMA)) == []


def test_a_value_that_the_schema_does_not_know_is_caught():
    more = {**VALUES, "pods": {**VALUES["pods"], "colour": "red"}}
    assert list(differences(more, SCHEMA)) == ["pods.colour"]


def settable(model: Any) -> set[str]:
    """As a path for each setting."""
    described = model.model_json_schema()
    found = set()
    for name, each in described["properties"].items():
        if "$ref" in each:
            section = described["$defs"][each["$ref"].rpartition("/")[2]]
            found |= {f"{name}.{inner}" for inner in section["properties"]}
        else:
            found.add(name)
    return found


def in_schema(schema: Mapping[str, Any]) -> set[str]:
    leaves = {path for path, each in schemas(schema, "") if path and each.get("type") != "object"}
    return {path for path in leaves if not path.endswith(".items")}


@pytest.mark.parametrize(
    ("model", "schema", "without"),
    [
        (Settable, SCHEMA["properties"]["settings"], SET_BY_THE_CHART),
        (
            TelemetrySettable,
            SCHEMA["properties"]["telemetry"]["properties"]["settings"],
            SET_BY_THE_CHART_OF_TELEMETRY,
        ),
    ],
    ids=["nodes", "telemetry"],
)
def test_settings_are_those_of_the_processes(model: Any, schema: Mapping[str, Any], without: set[str]):
    ours = {path for path in settable(model) if path not in without and path.split(".")[0] not in without}
    assert in_schema(schema) == ours


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("profil=compact", "profil"),
        ("sequencer.replica=5", "replica"),
        ("settings.drain=5", "drain"),
        ("settings.limits.groups=5", "groups"),
        ("telemetry.settings.retention=5", "retention"),
        ("tls.certManager.issuer=x", "issuer"),
        ("domains[0].name=a,domains[0].grups[0].name=b", "grups"),
        ("membership.resources.request.cpu=1", "request"),
    ],
)
def test_a_typo_is_named(setting: str, named: str):
    assert f"Additional property {named} is not allowed" in refusal(setting)
