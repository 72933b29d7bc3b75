"""Which protocols can be simulated, and how: the built-in ones, and those of installed packages.

A built-in protocol has a folder here, in which `trial` says all that is its own. A package names its `Trial` by an
entry point in the group `ordercast.trials`, under the name of its protocol. Nothing of a package is loaded before
somebody wants to simulate its protocol.
"""

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pkgutil import iter_modules

from ordercast import sim
from ordercast.sim.trial import Trial

ENTRY_POINTS = "ordercast.trials"


@cache
def _built_in() -> tuple[str, ...]:
    folders = [module.name for module in iter_modules(sim.__path__) if module.ispkg]
    return tuple(name for name in folders if find_spec(f"{sim.__name__}.{name}.trial"))


@cache
def _installed() -> dict[str, EntryPoint]:
    """A package cannot take the place of a built-in trial."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS) if point.name not in _built_in()}


@cache
def names() -> tuple[str, ...]:
    return tuple(sorted([*_built_in(), *_installed()]))


@cache
def trial_of(name: str) -> Trial:
    if name not in names():
        raise ValueError(f"there is no trial of {name!r}: there are {', '.join(names())}")
    point = _installed().get(name)
    trial = point.load() if point is not None else import_module(f"{sim.__name__}.{name}.trial").TRIAL
    if not isinstance(trial, Trial):
        raise TypeError(f"the entry point {name} ({point.value if point else name}) is no trial")
    return trial
