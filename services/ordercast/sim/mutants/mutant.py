"""Each mutant is the smallest change to the real code that breaks one rule. None of them is known inside it.

For all of them `Replica.check_order` is switched off: the assertion would stop a process before the checkers,
which are what is tried here, could see anything.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ordercast.protocols.scalatom.replica import Replica

Patch = tuple[type, str, Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    breaks: str
    patches: tuple[Patch, ...]
    #: It is looked for in runs in which replicas come and go.
    reconfigures: bool = False

    @contextmanager
    def applied(self) -> Iterator[None]:
        quiet: Patch = (Replica, "check_order", lambda self, key: None)
        patches = (*self.patches, quiet)
        originals = [(cls, name, cls.__dict__[name]) for cls, name, _ in patches]
        for cls, name, replacement in patches:
            setattr(cls, name, replacement)
        try:
            yield
        finally:
            for cls, name, original in originals:
                setattr(cls, name, original)


def register(
    catalogue: list[Mutant], name: str, breaks: str, *targets: tuple[type, str], reconfigures: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function replaces every target."""

    def add(replacement: Callable[..., Any]) -> Callable[..., Any]:
        patches = tuple((cls, attr, replacement) for cls, attr in targets)
        catalogue.append(Mutant(name, breaks, patches, reconfigures))
        return replacement

    return add
