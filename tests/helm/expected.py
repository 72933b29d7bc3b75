"""What the chart has to come to, for each profile: files that are compared in a test, and reviewed as diffs.

`make helm` writes them anew. What the chart only passes on, dashboards, rules and scripts, has tests of its own,
and is named here without its content; so is what is no different from the chart's own values.
"""

from pathlib import Path
from typing import Any

import yaml

from tests.helm.chart import PROFILES, objects

FOLDER = Path(__file__).parent / "expected"
HEAD = "# What helm/ordercast comes to with {values}. Written by `make helm`.\n"
PASSED_ON = "(as in the chart's files)"
SAME = "(as with the chart's own values)"


def expected(profile: str) -> str:
    path = PROFILES[profile]
    head = HEAD.format(values=f"ci/{path.name}" if path else "its own values")
    usual = objects() if path else []
    found = [
        {"kind": each["kind"], "metadata": {"name": each["metadata"]["name"]}, "rest": SAME}
        if each in usual
        else without_content(each)
        for each in objects(profile)
    ]
    return head + yaml.safe_dump_all(found, sort_keys=False, width=115)


def without_content(each: dict[str, Any]) -> dict[str, Any]:
    match each:
        case {"kind": "ConfigMap", "data": data}:
            shown = {name: PASSED_ON if name.endswith((".py", ".json")) else text for name, text in data.items()}
            # What is declared in values is not passed on: it is here in another form.
            shown |= {name: text for name, text in data.items() if name == "domains.json"}
            return {**each, "data": shown}
        case {"kind": "PrometheusRule"}:
            groups = [{"name": group["name"], "rules": PASSED_ON} for group in each["spec"]["groups"]]
            return {**each, "spec": {"groups": groups}}
    return each


def write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.yaml"):
        if path.stem not in PROFILES:
            path.unlink()
    for profile in PROFILES:
        (FOLDER / f"{profile}.yaml").write_text(expected(profile))


if __name__ == "__main__":
    write()
