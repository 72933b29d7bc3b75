"""A chart can only read what is inside it: dashboards, rules and alerts are copied there."""

from pathlib import Path

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
        FILES / folder / path.name: path.read_text()
        for folder, source, pattern in SOURCES
        for path in sorted(source.glob(pattern))
    }


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
