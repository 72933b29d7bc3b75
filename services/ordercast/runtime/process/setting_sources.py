"""Where settings come from: flags, then variables, then a file. For any model of settings.

Whatever has no meaning is an error that names it, wherever it stands.
"""

import argparse
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, CliSettingsSource, EnvSettingsSource
from pydantic_settings import SettingsError as SourceError

#: Kubernetes tells every pod about the services beside it in variables like these, named after the services:
#: those of a release called "ordercast" begin as ours do.
SERVICE_LINK = re.compile(
    r"(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


class SettingsError(Exception):
    """The process cannot run with these settings. The text has one line for each thing that is wrong."""


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Given(NamedTuple):
    """What flags, variables and the file say, joined."""

    values: dict[str, Any]
    #: The settings are to be printed, and nothing else done.
    is_to_print: bool


def gather(
    model: type[BaseSettings], argv: list[str], show_help: Callable[[], None], foreign: re.Pattern[str]
) -> Given:
    """SettingsError if a source is no good. `--help` calls `show_help` and raises SystemExit(0).

    Variables that begin as ours and match `foreign` are meant for other processes.
    """
    prefix = str(model.model_config["env_prefix"])
    parser = _Parser(show_help)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--print-config", action="store_true")
    try:
        flags = CliSettingsSource[Any](model, root_parser=parser)
        parsed = vars(parser.parse_args(argv))
        config, is_to_print = parsed.pop("config"), parsed.pop("print_config")
        given = flags(parsed_args=parsed)()
        environment = _environment(model, prefix, foreign)
    except SourceError as error:
        raise SettingsError(str(error)) from error
    config = config or os.environ.get(f"{prefix}CONFIG")
    file = _file(Path(config)) if config else {}
    return Given(_joined(file, environment, given), is_to_print)


class _Parser(argparse.ArgumentParser):
    def __init__(self, show_help: Callable[[], None]) -> None:
        super().__init__(allow_abbrev=False)
        self._show_help = show_help

    def print_help(self, file: object = None) -> None:
        self._show_help()

    def error(self, message: str) -> NoReturn:
        raise SettingsError(message)


def _environment(model: type[BaseSettings], prefix: str, foreign: re.Pattern[str]) -> dict[str, Any]:
    known = {f"{prefix}CONFIG", *(prefix + "__".join(path).upper() for path, _ in paths(model))}
    unknown = [
        name
        for name in sorted(os.environ)
        if name.upper().startswith(prefix)
        and name.upper() not in known
        and not SERVICE_LINK.fullmatch(name[len(prefix) :])
        and not foreign.match(name.upper())
    ]
    if unknown:
        raise SettingsError("\n".join(f"{name}: there is no such setting" for name in unknown))
    return EnvSettingsSource(model)()


def paths(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """Every setting, as the names that lead to it; a section comes before what is in it."""
    for name, field in model.model_fields.items():
        yield (*above, name), field
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from paths(field.annotation, (*above, name))


def _file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not TOML: {error}") from error
    if "services" in content:
        raise SettingsError(f"{path}: services: the command says which services run, not the settings")
    return content


def _joined(*sources: Mapping[str, Any]) -> dict[str, Any]:
    """The later source wins, setting by setting."""
    result: dict[str, Any] = {}
    for source in sources:
        for key, value in source.items():
            before = result.get(key)
            if isinstance(before, dict) and isinstance(value, dict):
                result[key] = _joined(before, value)
            else:
                result[key] = value
    return result


# --- What is wrong with them


def explained(error: ValidationError) -> SettingsError:
    # A default that is taken from another setting is not made while anything before it is wrong: no news.
    wrong = [dict(each) for each in error.errors() if each["type"] != "default_factory_not_called"]
    return SettingsError("\n".join(map(_explained, wrong)))


def _explained(error: dict[str, Any]) -> str:
    path = ".".join(str(part) for part in error["loc"])
    match error["type"]:
        case "extra_forbidden":
            return f"{path}: there is no such setting"
        case "missing":
            return f"{path}: has to be set"
        case "value_error":
            return f"{path}: {error['ctx']['error']}" if path else str(error["ctx"]["error"])
        case _:
            return f"{path}: {error['msg']} (it is {error['input']!r})"


# --- Print


def to_toml(heading: str, values: Mapping[str, Any]) -> str:
    """A file that gives the same settings. What is not set is left out: TOML has no word for it."""
    return "\n".join((f"# {heading}", *_toml_lines(values, ()))) + "\n"


def _toml_lines(values: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[str]:
    for key, value in values.items():
        if not isinstance(value, dict):
            yield f"{_toml_key(key)} = {_toml_value(value)}"
    for key, value in values.items():
        if isinstance(value, dict) and value:
            path = (*above, _toml_key(key))
            yield from ("", f"[{'.'.join(path)}]", *_toml_lines(value, path))


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml_value(key)


def _toml_value(value: object) -> str:
    # JSON writes numbers, booleans, texts and lists of them as TOML does, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
