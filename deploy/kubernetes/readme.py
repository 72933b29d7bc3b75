"""The table of values in the chart's README, made from values.yaml."""

from collections.abc import Iterator

from deploy.kubernetes.rendering import CHART
from deploy.kubernetes.values import Value, values_of

README = CHART / "README.md"
BEGIN, END = "<!-- values: written by `make helm` -->", "<!-- end of values -->"


def table() -> str:
    lines = ["| value | default | meaning |", "|---|---|---|"]
    lines += _rows(values_of((CHART / "values.yaml").read_text()))
    return "\n".join(lines)


def _rows(values: Iterator[Value]) -> Iterator[str]:
    for value in values:
        if value.default is None:
            # A map without a word of its own is described by what is in it.
            if value.meaning:
                yield f"| **`{value.path}`** | | {_cell(value.meaning)} |"
        else:
            yield f"| `{value.path}` | `{_cell(value.default)}` | {_cell(value.meaning)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def current(readme: str) -> str:
    """The README with the table of now."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def write() -> None:
    README.write_text(current(README.read_text()))
