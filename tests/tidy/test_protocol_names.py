"""Nothing but a protocol's own folders and the catalogue knows it by name: everybody else asks its traits. And
nobody asks which kind of members a group has: everybody asks that kind.
"""

import pytest

from tests.tidy import rules


def named_in() -> dict[str, list[str]]:
    """By module, the lines that name a protocol."""
    names = rules.protocol_names()
    found = {
        module: rules.protocol_name_errors(source, module, names) for module, source in rules.modules().items()
    }
    return {module: errors for module, errors in found.items() if errors}


def test_no_module_but_a_protocols_own_names_it():
    assert rules.protocol_names(), "there are protocols"
    assert [error for errors in named_in().values() for error in errors] == []


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


def test_a_name_that_is_also_a_word_is_found_as_a_string_and_as_a_module():
    for source in ("x = 'optimistic'", "from ordercast.protocols.optimistic import keys", "import optimistic_pb2"):
        assert rules.protocol_name_errors(source, "ordercast.gateway.intake", ("optimistic",))
    assert not rules.protocol_name_errors(
        '"""An optimistic order."""', "ordercast.gateway.intake", ("optimistic",)
    )


def test_no_module_asks_which_kind_of_members_a_group_has():
    found = [rules.kind_of_members_errors(source, module) for module, source in rules.modules().items()]
    assert [error for errors in found for error in errors] == []


@pytest.mark.parametrize("source", ["how_members_change(group)", "traits.members == Members.VIEWS"])
def test_such_a_question_is_found_where_it_does_not_belong(source):
    assert rules.kind_of_members_errors(source, "ordercast.runtime.process.node")
    assert not rules.kind_of_members_errors(source, "ordercast.core.members")
