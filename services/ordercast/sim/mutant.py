"""Each mutant is the smallest change to the real code that breaks one rule. None of them is known inside it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

Target = tuple[type | ModuleType, str]
Patch = tuple[type | ModuleType, str, Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    breaks: str
    patches: tuple[Patch, ...]
    #: It is looked for in runs in which replicas come and go.
    reconfigures: bool = False
    #: Random runs begin with this seed, which caught it once, and go on with the others if it does not any more.
    seed: int = 1

    @contextmanager
    def applied(self, silenced: tuple[Patch, ...] = ()) -> Iterator[None]:
        """Together with assertions that are switched off: they would stop a process before the checkers, which
        are what is tried here, could see anything.
        """
        patches = (*self.patches, *silenced)
        originals = [(where, name, where.__dict__[name]) for where, name, _ in patches]
        for where, name, replacement in patches:
            setattr(where, name, replacement)
        try:
            yield
        finally:
            for where, name, original in originals:
                setattr(where, name, original)


def register(
    catalogue: list[Mutant], name: str, breaks: str, *targets: Target, reconfigures: bool = False, seed: int = 1
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function replaces every target."""

    def add(replacement: Callable[..., Any]) -> Callable[..., Any]:
        patches = tuple((where, attr, replacement) for where, attr in targets)
        catalogue.append(Mutant(name, breaks, patches, reconfigures, seed))
        return replacement

    return add
