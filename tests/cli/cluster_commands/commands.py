"""How tests run commands, and what they look at."""

import json
from typing import Any

from typer.testing import CliRunner, Result

from ordercast.cli.main import app
from ordercast.local.cluster import HOST, wait_until

#: Nobody listens there.
NOWHERE = ("-g", f"{HOST}:1", "--timeout", "0.5")


def run(*args: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(args), input=stdin)


def text(*args: str, stdin: str | bytes | None = None) -> str:
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def document(*args: str, stdin: str | bytes | None = None) -> Any:
    """What stdout holds is one document and nothing else."""
    return json.loads(text(*args, "--json", stdin=stdin))


def unwrapped(shown: str) -> str:
    """A message of wrong usage, without its frame."""
    return " ".join(shown.replace("│", " ").split())


def wait_until_known(name: str) -> None:
    """A group is made when the gateway knows of it that was asked; its replicas may hear of it a moment later."""

    def is_known() -> bool:
        return not any(log["error"] for log in document("group", "describe", name)["logs"])

    wait_until(f"all replicas know {name}", is_known, timeout_s=60)
