"""Writes the dashboards as Grafana reads them: `make dashboards`."""

import json
from pathlib import Path

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.grafana import groups, overview, spark, stages, storage, waiting

FOLDER = Path(__file__).parent / "dashboards"
ALL = (overview, stages, waiting, groups, storage, spark)


def text_of(built: Dashboard) -> str:
    """The panels get numbers, so that links to one stay the same."""
    dashboard = built.build()
    for number, panel in enumerate(dashboard.panels or [], start=1):
        panel.id_val = number
    return JSONEncoder(sort_keys=True, indent=2).encode(dashboard) + "\n"


def dashboards() -> dict[str, str]:
    """By file."""
    texts = [text_of(module.build()) for module in ALL]
    return {f"{json.loads(text)['uid']}.json": text for text in texts}


def main() -> None:
    made = dashboards()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.json"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
