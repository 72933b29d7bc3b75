"""What the help of commands says, and that an option has one meaning in all of them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from ordercast.cli.main import COMMANDS, app, load
from ordercast.telemetry.settings import Settable

SERVE = "serve"


def commands(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The command, and all below it."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands((*path, name), below)


#: `serve` answers for itself: its options are the settings of processes.
ALL = [found for name in COMMANDS if name != SERVE for found in commands((name,), load(name))]


def shown(*args: str, columns: int = 200) -> str:
    result = CliRunner().invoke(app, [*args], env={"COLUMNS": str(columns)})
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("path", [path for path, _ in ALL], ids=" ".join)
def test_the_help_has_words_and_no_types_of_python(path: tuple[str, ...]) -> None:
    assert re.findall(r"<[a-z\[\] ]+>", shown(*path, "--help")) == []


def test_a_key_is_a_message_s_and_a_certificate_s_is_called_otherwise() -> None:
    meanings: dict[str, set[str]] = {}
    for path, command in ALL:
        for parameter in command.params:
            for name in parameter.opts:
                if name in ("--key", "--cert-key"):
                    meanings.setdefault(name, set()).add(parameter.help)
                    assert parameter.opts == [name], path
    assert meanings == {"--key": {"The message's key, for consumers."}, "--cert-key": {"The key of --cert (PEM)."}}


@pytest.mark.parametrize("services", [(), ("gateway",), ("telemetry",)])
def test_the_help_of_serve_begins_with_what_is_needed_first(services: tuple[str, ...]) -> None:
    page = shown("serve", *services, "--help")
    assert re.findall(r"<[a-z]+>|tuple\[", page) == []
    usage, first, *_ = page.split("╭─ " if services else "╭─ Services ")
    assert f"ordercast serve {' '.join(services) or 'SERVICE...'}" in usage
    assert "--data" in first
    for service in () if services else ("membership", "consensus", "sequencer", "gateway", "telemetry"):
        assert f"│ {service} " in first
    assert page.index("--data") < page.index("--tls.") < page.index("--log.level")
    for said in ("[default: info]", "--print-config"):
        assert said in page


def test_every_setting_of_the_telemetry_service_is_in_its_help() -> None:
    page = shown("serve", "telemetry", "--help")
    for name, field in Settable.model_fields.items():
        inner = getattr(field.annotation, "model_fields", None)
        for flag in [f"{name}.{each}" for each in inner] if inner else [name]:
            assert page.count(f"│ --{flag.replace('_', '-')} ") == 1, flag
