"""Which protocols can be simulated: each has a folder here, in which `trial` says all that is its own."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

from ordercast import sim
from ordercast.sim.trial import Trial


@cache
def names() -> tuple[str, ...]:
    folders = [module.name for module in iter_modules(sim.__path__) if module.ispkg]
    return tuple(sorted(name for name in folders if find_spec(f"{sim.__name__}.{name}.trial")))


@cache
def trial_of(name: str) -> Trial:
    if name not in names():
        raise ValueError(f"there is no trial of {name!r}: there are {', '.join(names())}")
    trial = import_module(f"{sim.__name__}.{name}.trial").TRIAL
    assert isinstance(trial, Trial)
    return trial
