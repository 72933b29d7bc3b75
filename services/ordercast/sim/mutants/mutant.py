"""Each mutant is the smallest change to the real code that breaks one rule. None of them is known inside it.

Where a machine checks itself, its mutants switch that off: the assertion would stop a process before the checkers,
which are what is tried here, could see anything.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ordercast.protocols.scalatom.replica import Replica

Target = tuple[type | ModuleType, str]
Patch = tuple[type | ModuleType, str, Any]

#: What SCALATOM asserts about its own order.
SCALATOM_ASSERTIONS: tuple[Patch, ...] = ((Replica, "check_order", lambda self, key: None),)


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    breaks: str
    patches: tuple[Patch, ...]
    #: It is looked for in runs in which replicas come and go.
    reconfigures: bool = False
    #: Assertions that are switched off with it.
    silenced: tuple[Patch, ...] = SCALATOM_ASSERTIONS

    @contextmanager
    def applied(self) -> Iterator[None]:
        patches = (*self.patches, *self.silenced)
        originals = [(where, name, where.__dict__[name]) for where, name, _ in patches]
        for where, name, replacement in patches:
            setattr(where, name, replacement)
        try:
            yield
        finally:
            for where, name, original in originals:
                setattr(where, name, original)


def register(
    catalogue: list[Mutant],
    name: str,
    breaks: str,
    *targets: Target,
    reconfigures: bool = False,
    silenced: tuple[Patch, ...] = SCALATOM_ASSERTIONS,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function replaces every target."""

    def add(replacement: Callable[..., Any]) -> Callable[..., Any]:
        patches = tuple((where, attr, replacement) for where, attr in targets)
        catalogue.append(Mutant(name, breaks, patches, reconfigures, silenced))
        return replacement

    return add
