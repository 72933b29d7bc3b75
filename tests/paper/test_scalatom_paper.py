"""[SCALATOM] Rodrigues, Guerraoui, Schiper 1998, line by line.

Each test names the figure, table or section it checks. `En` are the corrections told in the protocol's README.
"""

import pytest

from ordercast.core.ids import envelope_id, order_key, pack_u64, sn_of
from ordercast.core.machine import Persist, Send
from ordercast.core.quorums import qualified_majority
from ordercast.sim.checkers.order import check_acyclic
from ordercast.sim.scalatom.papers import (
    one_multicast,
    one_multicast_implied,
    rows,
    steps_with_fresh_messages,
)
from ordercast.sim.scalatom.stage import ACCEPTORS, Stage

ABC = {"a": ("n1", "n2", "n3"), "b": ("n2", "n3", "n4"), "c": ("n5",)}


def stage(groups: dict[str, tuple[str, ...]] | None = None) -> Stage:
    return Stage(groups or ABC, acceptors=None)


def log(stage: Stage, group: str) -> list[bytes]:
    return stage.cluster.logs.groups[group].keys


def test_section_3_5_the_example_of_a_qualified_majority() -> None:
    groups = [("p1", "p2", "p3"), ("p4", "p5", "p6")]
    assert qualified_majority(groups, {"p1", "p2", "p4", "p5"})
    assert not qualified_majority(groups, {"p1", "p2", "p3", "p4"})


def test_figure_5_step_1_the_message_goes_to_all_replicas_of_its_groups_and_to_nobody_else() -> None:
    story = stage()
    story.publish("c1", "a", "b")
    story.run(0.05)
    story.finish()
    assert story.cluster.traffic.by_kind["disseminate"] == len({*ABC["a"], *ABC["b"]})


def test_figure_5_step_2_the_stamp_is_the_clock_before_it_is_raised_and_durable_before_it_is_sent() -> None:
    story = stage()
    machine = story.cluster.machine("n1", "scalatom")
    effects = []
    original = machine.step
    machine.step = lambda event: effects.append(original(event)) or effects[-1]
    story.publish("c1", "a")
    story.run(0.05)
    step = next(step for step in effects if any(isinstance(e, Persist) and e.barrier for e in step))
    kinds = [type(effect) for effect in step]
    stamp = next(e.message for e in step if isinstance(e, Send))
    assert kinds.index(Persist) < kinds.index(Send)
    assert (stamp.rec_ts, machine.clock) == (0, 1)  # raised by the receipt; the decision is below it


def test_figure_5_step_3_the_proposal_is_the_maximum_of_a_qualified_majority_of_stamps() -> None:
    story = Stage({"a": ("n1", "n2", "n3")}, acceptors=ACCEPTORS)
    story.raise_clock("n3", "a", 40)
    story.publish("c1", "a")
    story.run(0.05)
    assert sn_of(log(story, "a")[0]) == 41


def test_figure_5_step_3_without_a_majority_of_every_group_nothing_is_decided() -> None:
    story = stage()
    for node in ("n2", "n3"):  # n1 alone is left of a; b keeps n4
        story.crash(node)
    story.publish("c1", "a", "b")
    story.run(3.0)
    assert log(story, "a") == log(story, "b") == []
    story.finish()
    assert len(log(story, "a")) == len(log(story, "b")) == 1


def test_figure_5_step_4_a_decision_raises_the_clock_above_it() -> None:
    story = Stage({"a": ("n1", "n2", "n3")}, acceptors=ACCEPTORS)
    story.raise_clock("n3", "a", 40)
    story.publish("c1", "a")
    story.run(0.05)
    assert [story.cluster.machine(n, "scalatom").clock for n in ("n1", "n2", "n3")] == [42, 42, 42]


def test_figure_5_step_5_histories_of_a_majority_of_the_own_group_are_enough() -> None:
    story = stage({"a": ("n1", "n2", "n3")})
    story.crash("n1")
    story.publish("c1", "a")
    story.run(1.0)
    assert len(log(story, "a")) == 1


def test_section_4_2_step_5_a_message_waits_for_a_predecessor_that_is_not_decided() -> None:
    story = Stage({"a": ("n1", "n2", "n3"), "c": ("n2",)}, acceptors=ACCEPTORS)
    story.hold("g1", "n2")
    story.hold("n3", "n1", "n2", *ACCEPTORS)
    story.hold("g2", "n3")
    story.publish("c1", "a")  # stamped by n1; its coordinator n3 cannot reach the acceptors
    story.run(0.01)
    story.publish("c2", "a", "c")  # decided above that
    story.run(0.1)
    assert log(story, "a") == []
    story.finish()
    assert len(log(story, "a")) == 2


def test_e2_equal_sequence_numbers_are_ordered_by_id() -> None:
    low, high = envelope_id(1, 9), envelope_id(2, 0)
    assert order_key(5, low) < order_key(5, high) < order_key(6, low)
    assert sn_of(order_key(5, high)) == 5
    assert pack_u64(256) > pack_u64(255)


def test_table_1_uniform_agreement_holds_for_a_replica_that_dies_right_after_delivering() -> None:
    story = stage({"a": ("n1", "n2", "n3")})
    deliver = story.world.on_deliver

    def die(process, effect):  # type: ignore[no-untyped-def]
        deliver(process, effect)
        if len(story.cluster.logs.groups["a"].keys) == 1:
            story.world.after(0.0, story.crash, process)

    story.world.on_deliver = die
    story.publish("c1", "a")
    story.publish("c2", "a")
    story.run(0.02)
    story.finish()
    assert len(story.cluster.logs.groups["a"].messages) == 2


def test_table_1_total_order_is_acyclic_over_groups_that_share_no_replica() -> None:
    groups = {"a": ("n1", "n2", "n3"), "b": ("n4", "n5", "n6"), "c": ("n7", "n8", "n9")}
    story = Stage(groups, acceptors=None, clients=3, gateways=("g1", "g2", "g3"))
    for _ in range(10):  # every pair of groups, by senders that do not wait for each other
        story.publish("c1", "a", "b")
        story.publish("c2", "b", "c")
        story.publish("c3", "a", "c")
        story.run(0.003)
    story.finish()
    check_acyclic(story.cluster.logs.groups, story.cluster.board)
    assert all(len(group.messages) == 20 for group in story.cluster.logs.groups.values())


def test_section_4_3_only_the_sender_and_the_destinations_take_part() -> None:
    story = stage()
    silent = story.cluster.machine("n5", "scalatom")
    steps = []
    original = silent.step
    silent.step = lambda event: steps.append(type(event).__name__) or original(event)
    for _ in range(5):
        story.publish("c1", "a", "b")
        story.run(0.02)
    assert "Receive" not in steps


def test_table_2_six_communication_steps() -> None:
    assert one_multicast(5, eager=True).steps == 6


def test_table_2_five_steps_when_fresh_messages_carry_the_gossip() -> None:
    assert steps_with_fresh_messages(5) == 5


@pytest.mark.parametrize("d", range(2, 13))
def test_table_2_messages_with_eager_relay(d: int) -> None:
    count = one_multicast(d, eager=True)
    assert count.without_gossip == 3 * (d - 1) ** 2 + 4 * (d - 1)
    assert count.lone_gossip == (d - 1) ** 2


@pytest.mark.parametrize("d", [3, 5, 12])
def test_table_2_lazy_relay_saves_both_relays(d: int) -> None:
    eager, lazy = one_multicast(d, eager=True), one_multicast(d, eager=False)
    saved = (d - 1) ** 2 + (d - 1) * (d - 2)
    assert eager.without_gossip - lazy.without_gossip == saved


@pytest.mark.parametrize("d", [3, 5, 12])
def test_table_2_stamps_that_imply_the_number_save_the_consensus(d: int) -> None:
    implied, lazy = one_multicast_implied(d), one_multicast(d, eager=False)
    assert implied.steps == 3, "the message, the stamps, the decision; gossip is there before it"
    assert lazy.without_gossip - implied.without_gossip == 2 * (d - 1)
    assert {"accept", "accepted"}.isdisjoint(implied.messages)


def test_table_2_message_size_does_not_depend_on_the_number_of_groups_in_the_system() -> None:
    sizes = {one_multicast(3, eager=False, groups=number).bytes_all for number in (1, 50, 500)}
    assert len(sizes) == 1


def test_the_rows_put_every_published_figure_beside_ours() -> None:
    table = rows(ds=(2, 3), groups=(1, 10))
    assert all(
        row.published == row.measured
        for row in table
        if "published:" not in row.what
        and "lazy" not in row.what
        and row.published != "f(d)"
        and "independent" not in str(row.published)
    )
