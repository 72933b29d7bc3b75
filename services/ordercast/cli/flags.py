"""Flags in the help: `--json`, and not `--json <bool>`, for nothing can be given behind it."""

import functools
from typing import Any


def without_types(command: Any) -> None:
    """Of the command, and of all below it."""
    for parameter in command.params:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    # `--help` is not among the parameters: it is made when somebody asks for it.
    command.get_help_option = functools.partial(_help_option, command.get_help_option)
    for below in getattr(command, "commands", {}).values():
        without_types(below)


def _help_option(make: Any, context: Any) -> Any:
    option = make(context)
    if option is not None:
        option.metavar = ""
    return option
