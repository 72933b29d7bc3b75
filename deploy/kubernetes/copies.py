"""A chart can only read what is inside it: dashboards, rules and alerts are copied there.

Rules and alerts are changed on the way: they are of one installation alone, and the chart says of which.
"""

from pathlib import Path

import yaml

from deploy.installations import of_one_installation
from deploy.kubernetes.rendering import CHART, ROOT

FILES = CHART / "files"
SOURCES = (
    ("dashboards", ROOT / "deploy" / "grafana" / "dashboards", "*.json"),
    ("prometheus", ROOT / "deploy" / "prometheus", "rules.yml"),
    ("prometheus", ROOT / "deploy" / "prometheus", "alerts.yml"),
)


def copies() -> dict[Path, str]:
    """By where they belong."""
    return {
        FILES / folder / path.name: copied(path)
        for folder, source, pattern in SOURCES
        for path in sorted(source.glob(pattern))
    }


def copied(path: Path) -> str:
    if path.suffix != ".yml":
        return path.read_text()
    head = f"# Made from {path.relative_to(ROOT)} by `make helm`; not edited.\n"
    rules = of_one_installation(yaml.safe_load(path.read_text()))
    return head + yaml.safe_dump(rules, sort_keys=False, width=115)


def there() -> dict[Path, str]:
    """As they are."""
    folders = sorted({folder for folder, _, _ in SOURCES})
    return {path: path.read_text() for folder in folders for path in sorted((FILES / folder).glob("*"))}


def write() -> None:
    made = copies()
    for path in there():
        if path not in made:
            path.unlink()
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
