"""What a domain of virtually synchronous groups can set, and a group for itself: read, refused, and obeyed."""

import pytest

from ordercast.core.machine import Start, ViewChanged
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.settings import (
    Causality,
    FlushKind,
    InvalidSettings,
    Ordering,
    Settings,
    check_group,
    from_map,
)
from ordercast.v1.membership_pb2 import DomainView, GroupView
from tests.unit.driving import LIVES

MEMBERS = ["n1", "n2", "n3"]


def test_settings_are_read_with_their_types_and_the_rest_keeps_its_default():
    given = {
        "ordering": "total",
        "flush": "all",
        "causality": "epochs",
        "k_stability": "2",
        "order_batch": "16",
        "stability_idle_s": "0.25",
    }
    assert from_map(given) == Settings(
        ordering=Ordering.TOTAL,
        flush=FlushKind.ALL,
        causality=Causality.EPOCHS,
        k_stability="2",
        order_batch=16,
        stability_idle_s=0.25,
    )
    assert from_map({}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ordering", "partial"),
        ("flush", ""),
        ("causality", "none"),
        ("k_stability", "0"),
        ("k_stability", "65"),
        ("k_stability", "most"),
        ("order_batch", "0"),
        ("order_batch", "1.5"),
        ("order_wait_s", "-1"),
        ("token_share", "0.4"),
        ("silence_s", "nan"),
        ("idempotence_window", "1"),
        ("colour", "red"),
        # Not for users: replicas would differ.
        ("log_chunk", "2"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_its_name(name: str, value: str):
    with pytest.raises(InvalidSettings, match=name):
        from_map({name: value})


def test_a_group_may_have_a_k_of_its_own_and_nothing_else():
    for value in ("majority", "all", "1", "64"):
        check_group({}, {"k_stability": value})
    check_group({}, {})
    with pytest.raises(InvalidSettings, match="k_stability"):
        check_group({}, {"k_stability": "few"})
    with pytest.raises(InvalidSettings, match="'ordering'; there are k_stability"):
        check_group({}, {"ordering": "total"})


def test_with_the_conservative_rule_k_is_everyone_and_cannot_be_less():
    assert from_map({"causality": "conservative", "k_stability": "all"}).k_stability == "all"
    with pytest.raises(InvalidSettings, match="conservative"):
        from_map({"causality": "conservative", "k_stability": "majority"})
    with pytest.raises(InvalidSettings, match="conservative"):
        check_group({"causality": "conservative"}, {"k_stability": "1"})


@pytest.mark.parametrize(
    ("domain", "own", "k"),
    [("majority", None, 2), ("majority", "all", 3), ("all", "1", 1), ("1", "majority", 2), ("all", "64", 3)],
)
def test_a_group_waits_for_as_many_disks_as_it_says_itself_or_else_its_domain(
    domain: str, own: str | None, k: int
):
    machine = Isis("n1", Settings(k_stability=domain))
    group = GroupView(
        group="a",
        configuration=1,
        replicas=MEMBERS,
        incarnations=[LIVES[name] for name in MEMBERS],
        settings={} if own is None else {"k_stability": own},
    )
    machine.step(Start(0.0, 0.0, LIVES["n1"], []))
    machine.step(ViewChanged(0.0, 0.0, DomainView(domain="d", number=1, groups=[group])))
    era = machine.replicas["a"].installed
    assert era is not None
    assert machine.stability.k(era) == k
