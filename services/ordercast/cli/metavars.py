"""What the help shows behind an option: a word for people, and not the name of a type in Python.

Behind a flag there is nothing, for nothing can be given there. An argument is its own name in capitals.
"""

import functools
from typing import Any

#: Typer's own words, which earlier versions of it do not have.
WORDS = {
    "<str>": "TEXT",
    "<list[str]>": "TEXT",
    "<int>": "NUMBER",
    "<int range>": "NUMBER",
    "<float>": "NUMBER",
    "<float range>": "NUMBER",
    "<path>": "PATH",
    "<file>": "FILE",
    "<dir>": "FOLDER",
}


def in_words(command: Any) -> None:
    """Put the metavars of the command, and of all commands below it, in words."""
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.metavar = parameter.metavar or parameter.name.upper()
            parameter.display_type_rich = _nothing
        elif getattr(parameter, "is_flag", False):
            parameter.metavar = parameter.metavar or ""
        elif hasattr(parameter, "display_type"):
            parameter.display_type = functools.partial(_word, parameter.display_type)
    # `--help` is not among the parameters: it is made when somebody asks for it.
    command.get_help_option = functools.partial(_help_option, command.get_help_option)
    for below in getattr(command, "commands", {}).values():
        in_words(below)


def _nothing(*_: Any, **__: Any) -> None:
    """The type of an argument, which its name says."""


def _word(display: Any, *args: Any, **options: Any) -> str:
    shown = str(display(*args, **options))
    return WORDS.get(shown, shown)


def _help_option(make: Any, context: Any) -> Any:
    option = make(context)
    if option is not None:
        option.metavar = ""
    return option
