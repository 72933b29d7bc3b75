"""Nothing but a protocol's own folders and the catalogue knows it by name: everybody else asks its traits."""

import pytest

from tests.tidy import rules

_SIM = "the simulator has a harness of its own for each protocol"
#: Modules and packages that still name a protocol, and why. One that has become clean has to be taken out.
REMAINING = {
    "ordercast.cli.sim": _SIM,
    "ordercast.sim.checkers.ending": _SIM,
    "ordercast.sim.checkers.logs": _SIM,
    "ordercast.sim.checkers.order": _SIM,
}


def named_in() -> dict[str, list[str]]:
    """By module, the lines that name a protocol."""
    names = rules.protocol_names()
    found = {
        module: rules.protocol_name_errors(source, module, names) for module, source in rules.modules().items()
    }
    return {module: errors for module, errors in found.items() if errors}


def remains(module: str) -> list[str]:
    return [known for known in REMAINING if rules.within(module, known)]


def test_no_module_but_a_protocols_own_names_it():
    assert rules.protocol_names(), "there are protocols"
    assert [error for module, errors in named_in().items() if not remains(module) for error in errors] == []


def test_what_has_become_clean_is_no_exception_any_more():
    used = {known for module in named_in() for known in remains(module)}
    assert sorted(used) == sorted(REMAINING)


@pytest.mark.parametrize(
    "source",
    [
        "from ordercast.protocols.isis import times",
        "from ordercast.v1.isis_pb2 import Cast",
        "if domain.protocol == 'isis': pass",
        "ISIS = 1",
        "def _isis_of(): pass",
        '"""Only for isis."""',
    ],
)
def test_a_name_is_found_wherever_it_stands(source):
    for module in (
        "ordercast.gateway.intake",
        "ordercast.protocols.scalatom.machine",
        "ordercast.sim.scalatom.trial",
    ):
        assert rules.protocol_name_errors(source, module, ("isis", "scalatom"))


@pytest.mark.parametrize(
    "module", ["ordercast.protocols.isis.machine", "ordercast.sim.isis.papers", rules.CATALOGUE]
)
def test_its_own_folders_and_the_catalogue_may_name_it(module):
    assert rules.protocol_name_errors("NAME = 'isis'", module, ("isis",)) == []


@pytest.mark.parametrize("word", ["crisis", "isisland"])
def test_a_word_that_only_contains_a_name_is_none(word):
    assert rules.protocol_name_errors(word, "ordercast.gateway.intake", ("isis",)) == []
