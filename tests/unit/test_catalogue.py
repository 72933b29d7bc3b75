"""The protocols that a domain can run: built in, and from installed packages."""

from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from ordercast.core.level import LEVEL
from ordercast.core.protocol import Members
from ordercast.protocols import catalogue
from ordercast.protocols.catalogue import BUILT_IN, DEFAULT, UnusableProtocol, named, protocols, with_installed
from ordercast.protocols.isis.protocol import ISIS
from ordercast.runtime.telemetry.stages import span_of, stages_of
from ordercast.telemetry.schema import names


class Codec:
    mark = b"theirs1:"


#: As an installed package would have them.
THEIRS = replace(DEFAULT, name="theirs", seen=Codec())
WITH_A_FOREIGN_MARK = replace(DEFAULT, name="theirs", seen=protocols()["isis"].seen)
OF_A_TAKEN_NAME = replace(DEFAULT, name="isis")
NONE = object()


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{value}", catalogue.ENTRY_POINTS)


def test_a_protocol_of_an_installed_package_stands_beside_the_built_in_ones():
    found = with_installed([point("theirs", "THEIRS")])
    assert list(found) == sorted(["theirs", *(protocol.name for protocol in BUILT_IN)])
    assert found["theirs"] is THEIRS


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("theirs", "NONE", "no protocol of that name"),
        ("other", "THEIRS", "no protocol of that name"),
        ("isis", "OF_A_TAKEN_NAME", "two protocols are called isis"),
        ("theirs", "WITH_A_FOREIGN_MARK", "its mark in session tokens"),
    ],
)
def test_what_cannot_be_told_from_others_is_not_taken(name, value, why):
    with pytest.raises(UnusableProtocol, match=why):
        with_installed([point(name, value)])


def test_a_protocol_has_acceptors_as_its_traits_say():
    with pytest.raises(ValueError, match="acceptors"):
        replace(DEFAULT, acceptor=None)


@pytest.mark.parametrize("name", list(protocols()))
def test_every_protocol_makes_machines_one_of_which_has_its_name(name):
    protocol = named(name)
    assert name in protocol.replica("n1", {}, observe=False)
    assert protocol.parse({}, protocol.level).spans_groups
    if protocol.acceptor is not None:
        assert protocol.acceptor("n1")


@pytest.mark.parametrize("name", list(protocols()))
def test_users_are_told_of_every_setting_and_of_its_default(name):
    protocol = named(name)
    with pytest.raises(ValueError, match="there are") as wrong:
        protocol.parse({"no-such": "1"}, protocol.level + 99)
    assert str(wrong.value).partition("there are ")[2].split(", ") == [each.name for each in protocol.settings]
    for setting in protocol.settings:
        protocol.parse({setting.name: setting.default}, LEVEL)


@pytest.mark.parametrize("name", list(protocols()))
def test_every_stage_of_a_protocol_has_a_span_in_the_schema_of_telemetry(name):
    spans = [value for key, value in vars(names).items() if key.startswith("SPAN_")]
    assert {span_of(stage) for stage in stages_of(name).values()} <= set(spans)


def test_who_has_views_says_so_by_a_trait():
    assert [name for name in protocols() if named(name).traits.members == Members.VIEWS] == ["isis"]


@pytest.mark.parametrize("changed", [{"causal": None}, {"traits": replace(ISIS.traits, causal=False)}])
def test_a_protocol_whose_entries_say_what_they_come_after_brings_what_reads_that(changed: dict[str, Any]):
    with pytest.raises(ValueError, match="tell what entries come after"):
        replace(ISIS, **changed)


def test_logs_without_an_order_across_them_can_be_judged():
    with pytest.raises(ValueError, match="could be judged"):
        replace(ISIS, causal=None, traits=replace(ISIS.traits, causal=False))
