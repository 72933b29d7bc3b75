"""Which protocols can be simulated: built in, and from installed packages."""

from importlib.metadata import EntryPoint

import pytest

from ordercast.sim import trials

TRIAL = trials.trial_of("isis")
NONE = object()


@pytest.fixture
def installed(monkeypatch):
    """Entry points as an installed package would have them."""
    cached = (trials._installed, trials.names, trials.trial_of)

    def install(**values):
        points = [EntryPoint(name, f"{__name__}:{value}", trials.ENTRY_POINTS) for name, value in values.items()]
        monkeypatch.setattr(trials, "entry_points", lambda group: points if group == trials.ENTRY_POINTS else [])
        for function in cached:
            function.cache_clear()

    yield install
    for function in cached:
        function.cache_clear()


def test_the_trial_of_an_installed_package_stands_beside_the_built_in_ones(installed):
    installed(theirs="TRIAL")
    assert trials.names() == ("apbcast", "isis", "optimistic", "scalatom", "theirs", "toto")
    assert trials.trial_of("theirs") is TRIAL


def test_a_package_does_not_take_the_place_of_a_built_in_trial(installed):
    installed(scalatom="TRIAL")
    assert trials.trial_of("scalatom") is not TRIAL


def test_what_is_no_trial_is_refused_when_somebody_wants_it(installed):
    installed(theirs="NONE")
    assert "theirs" in trials.names()
    with pytest.raises(TypeError, match="theirs"):
        trials.trial_of("theirs")
