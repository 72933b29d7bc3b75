"""Options that several commands share: a function takes one value, and its command line has the options.

Typer reads the signature of a function to know the options, and its annotations to know their types.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

#: By name, the annotation and the default.
Options = Mapping[str, tuple[Any, Any]]


def put_in_place_of(name: str, options: Options, command: Callable[..., None], run: Callable[..., None]) -> None:
    """`run` gets the command line of `command`, with these options where that takes the parameter of this name."""
    signature = inspect.signature(command)
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in signature.parameters.values()
        if parameter.name != name
    ]
    shared = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for option, (annotation, default) in options.items()
    ]
    run.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *shared]}
