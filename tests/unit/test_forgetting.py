"""Groups remember only so many producers, and agree on whom they forget."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.client.lane import Lane
from ordercast.core.ids import envelope_id, order_key
from ordercast.core.level import LEVEL
from ordercast.gateway.producer import label_of
from ordercast.protocols import catalogue
from ordercast.protocols.celllog.forgetting import CLIENTS_LEVEL, PRODUCERS_MAX, common_length
from ordercast.protocols.celllog.idempotence import (
    PRODUCER,
    ProducerTable,
    producer_of_span,
    producer_record,
)
from ordercast.sim.checkers.producers import check_sets, remembered
from ordercast.v1.common_pb2 import (
    REFUSAL_FENCED,
    REFUSAL_GAP,
    REFUSAL_UNSPECIFIED,
    ProducerRange,
    RangeOutcome,
    Span,
)
from ordercast.v1.membership_pb2 import DomainView
from ordercast.v1.sequencer_pb2 import ProducerRecord
from tests.unit.driving import range_of
from tests.unit.gateway_host import VIEW, Host

ALONE = ("a",)
SHARED = ("a", "b")
FLOODER, HONEST = b"flooder.", b"honest.."


class Group:
    """One group's table with its disk."""

    def __init__(
        self, producers_max: int = 8, *, distance: int = 10**9, name: str = "a", isis: bool = False
    ) -> None:
        self.table = ProducerTable(name, distance, 4, producers_max, counts_shared_sets=not isis)
        self.sn = self.offset = 0
        self.disk: dict[bytes, bytes] = {}

    def take(self, range_: ProducerRange, groups: tuple[str, ...] = ALONE, sn: int | None = None) -> RangeOutcome:
        self.sn = self.sn + 1 if sn is None else sn
        key = order_key(self.sn, envelope_id(1, self.sn))
        outcome = self.table.judge(range_, groups, self.sn, key, self.offset)
        self.offset += sum(span.count for span in outcome.spans if not span.duplicate)
        for record, value in self.table.changes():
            self.disk.pop(record, None) if value is None else self.disk.update({record: value})
        return outcome

    def hear(self, name: str, first: int = 1, *, client: bytes = FLOODER, **fields: object) -> RangeOutcome:
        return self.take(range_of(name.encode(), first, client=client, **fields))

    def open(self, name: str, token: bytes, client: bytes = HONEST) -> RangeOutcome:
        return self.take(range_of(name.encode(), 0, 0, client=client, open_token=token))

    def flood(self, count: int, start: int = 0) -> None:
        for index in range(start, start + count):
            self.hear(f"one-shot {index}")

    @property
    def names(self) -> list[str]:
        return sorted(producer.decode() for producer, _ in self.table.states)

    def restart(self) -> None:
        heads = {k: ProducerRecord.FromString(v) for k, v in self.disk.items() if k[:1] == PRODUCER}
        for key, value in sorted(self.disk.items()):
            if key[:1] != PRODUCER:
                heads[producer_of_span(key)].spans.append(Span.FromString(value))
        self.table.load(heads.values())

    def take_snapshot_of(self, other: "Group") -> None:
        self.table.clear()
        self.table.changes()
        self.table.load([ProducerRecord.FromString(m.SerializeToString()) for m in other.table.messages()])
        self.sn, self.offset, self.disk = other.sn, other.offset, dict(self.table.records())


# ----------------------------------------------------------------------------------------------- the bound


def test_a_flood_of_producers_leaves_no_more_than_the_bound_in_memory_and_on_disk():
    group = Group(producers_max=128)
    group.flood(2000)
    assert 120 <= len(group.table) <= 128
    assert group.disk == dict(group.table.records())
    assert len(group.disk) == 2 * len(group.table), "a head and a place each"


def test_a_million_producers_cost_little_memory():
    """What a producer costs, and that there are no more than the default allows."""
    assert PRODUCERS_MAX <= 16_384
    count = 2048
    group = Group(producers_max=count)
    group.flood(64)
    tracemalloc.start()
    try:
        for index in range(2 * count):
            name = index.to_bytes(16, "big")
            group.table.judge(range_of(name, client=FLOODER), ALONE, index + 65, bytes(24), index)
            group.table.changes()
        producer_record.cache_clear()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / count < 800
    assert len(group.table) <= count


def test_what_is_refused_of_somebody_unknown_is_not_remembered():
    group = Group()
    assert group.hear("late", 7).refusal == REFUSAL_GAP
    assert group.hear("fenced", epoch=3).refusal == REFUSAL_FENCED
    assert (len(group.table), group.table.sets, group.disk) == (0, {}, {})


def test_all_of_them_can_be_forgotten_by_distance():
    group = Group(distance=10)
    group.open("named", b"t")
    group.flood(20)
    group.take(range_of(b"last", client=HONEST), sn=100)
    assert group.names == ["last"]
    assert group.disk == dict(group.table.records())


def test_queues_are_cut_to_the_highest_length_that_fits():
    assert common_length([10], 8) == 8
    assert common_length([1, 2, 9], 8) == 5
    assert common_length([4, 4, 1], 8) == 3
    assert common_length([1] * 9, 8) == 0


# ------------------------------------------------------------------------------------------- who is spared


def test_an_idle_producer_outlives_any_number_of_one_shot_producers_of_its_own_client():
    group = Group()
    group.hear("idle", 1)
    group.hear("idle", 2)
    group.flood(500)
    assert group.hear("idle", 3).refusal == REFUSAL_UNSPECIFIED
    (span,) = group.hear("idle", 2).spans
    assert (span.duplicate, span.first_offset) == (True, 1)


def test_a_producer_that_was_heard_of_once_outlives_the_flood_of_another_client():
    group = Group()
    group.hear("quiet", client=HONEST)
    for index in range(300):
        group.hear(f"f {index}", 1)
        group.hear(f"f {index}", 2)
    (span,) = group.hear("quiet", client=HONEST).spans
    assert span.duplicate


def test_of_one_client_the_least_recently_heard_of_go_first():
    group = Group()
    group.flood(8)
    group.flood(2, start=100)
    assert group.names == sorted([f"one-shot {i}" for i in range(2, 8)] + ["one-shot 100", "one-shot 101"])


def test_with_more_clients_than_room_those_that_were_heard_of_longest_ago_lose_theirs():
    group = Group()
    for index in range(20):
        group.hear(f"p {index:02}", client=b"%08d" % index)
    assert group.names == [f"p {index:02}" for index in range(12, 20)]


def test_newcomers_find_room_beside_producers_that_were_heard_of_often():
    group = Group()
    for index in range(20):
        group.hear(f"new {index}", 1)
        assert group.hear(f"new {index}", 2).refusal == REFUSAL_UNSPECIFIED


def test_a_producer_without_a_client_is_not_counted():
    """In a cluster that is being upgraded, older replicas forget nobody."""
    group = Group()
    for index in range(50):
        group.hear(f"old {index:02}", client=b"")
    group.flood(50)
    assert len(group.table) == 50 + 8


def test_it_is_counted_from_when_a_client_is_named_and_stays_so():
    group = Group()
    group.hear("p", 1, client=b"")
    group.hear("p", 2, client=HONEST)
    group.hear("p", 3, client=b"")
    ((_, record),) = remembered(group.table).items()
    assert (record.client, record.established) == (HONEST, True)


def test_groups_without_an_order_in_common_do_not_count_what_they_share():
    group = Group(isis=True)
    for index in range(50):
        group.take(range_of(b"shared %d" % index, client=FLOODER), SHARED)
        group.take(range_of(b"alone %d" % index, client=FLOODER), ALONE)
    assert [len([k for k in group.table.states if k[1] == groups]) for groups in (SHARED, ALONE)] == [50, 8]


# --------------------------------------------------------------------------------- after it was forgotten


def forgetting(group: Group, count: int = 40) -> None:
    """So many producers of the same client, each heard of twice, that all earlier ones are gone."""
    for index in range(count):
        group.hear(f"other {index}", 1, client=HONEST)
        group.hear(f"other {index}", 2, client=HONEST)


def test_whoever_goes_on_meets_a_gap():
    group = Group()
    group.hear("p", 1, client=HONEST)
    group.hear("p", 2, client=HONEST)
    forgetting(group)
    outcome = group.hear("p", 3, client=HONEST)
    assert (outcome.refusal, outcome.last_sequence, list(outcome.spans)) == (REFUSAL_GAP, 0, [])


def test_whoever_had_opened_is_fenced_and_is_never_delivered_twice():
    group = Group()
    epoch = group.open("p", b"t1").epoch
    assert group.hear("p", 1, epoch=epoch, client=HONEST).spans
    forgetting(group)
    assert group.hear("p", 1, epoch=epoch, client=HONEST).refusal == REFUSAL_FENCED
    assert group.open("p", b"t1").epoch > epoch + 1, "a late copy of its opening is another one's"
    assert group.hear("p", 1, epoch=epoch, client=HONEST).refusal == REFUSAL_FENCED


def test_an_instance_that_was_forgotten_stays_fenced_by_the_one_after_it():
    group = Group()
    old = group.open("p", b"t1").epoch
    group.hear("p", 1, epoch=old, client=HONEST)
    forgetting(group)
    group.restart()
    new = group.open("p", b"t2").epoch
    assert new > old + 1, "by one more is what its own next opening would be"
    assert group.hear("p", 1, epoch=new, client=HONEST).spans
    assert group.hear("p", 2, epoch=old, client=HONEST).refusal == REFUSAL_FENCED
    assert group.open("p", b"t3").epoch == new + 1


# ------------------------------------------------------------------------------------- everybody the same


RANGES = st.builds(
    lambda producer, client, first, count, token, epoch: range_of(
        b"p%d" % producer,
        0 if token else first,
        0 if token else count,
        client=client,
        open_token=token,
        epoch=epoch,
    ),
    st.integers(0, 9),
    st.sampled_from([b"", FLOODER, FLOODER, HONEST]),
    st.integers(1, 3),
    st.integers(1, 2),
    st.sampled_from([b"", b"", b"", b"t1", b"t2"]),
    st.sampled_from([0, 0, 0, 1, 3]),
)
STEPS = st.lists(
    st.tuples(
        RANGES,
        st.sampled_from([ALONE, SHARED, SHARED]),
        st.sampled_from([0, 1, 1, 9]),  # how far the order moves on
        st.sampled_from(["", "", "restart", "snapshot"]),  # what happens to one of the replicas then
    ),
    max_size=60,
)


@given(STEPS)
def test_replicas_and_groups_forget_the_same_whatever_happens_to_them(steps):
    there, other = Group(3, distance=20), Group(3, distance=20)
    elsewhere = Group(3, distance=20, name="b")
    sn = 0
    for range_, groups, further, event in steps:
        sn += further
        outcome = there.take(range_, groups, sn)
        assert other.take(range_, groups, sn) == outcome
        if groups == SHARED:
            theirs = elsewhere.take(range_, groups, sn)
            verdicts = [[(s.first_sequence, s.count, s.duplicate) for s in o.spans] for o in (outcome, theirs)]
            assert verdicts[0] == verdicts[1]
            facts = [(o.refusal, o.epoch, o.last_sequence) for o in (outcome, theirs)]
            assert facts[0] == facts[1]
            there.table.expire(sn)
            check_sets({"a": there.table, "b": elsewhere.table})
        if event == "restart":
            other.restart()
        elif event == "snapshot":
            other.take_snapshot_of(there)
        assert remembered(other.table) == remembered(there.table)
        assert other.disk == dict(other.table.records())


def test_a_copy_is_what_the_table_was_when_it_was_made():
    group = Group()
    group.open("p", b"t")
    forgetting(group)
    copy = group.table.copy()
    before = group.table.messages()
    group.hear("other 39", 3, client=HONEST)
    group.flood(20)
    assert copy.messages() == before


def test_records_of_older_software_that_say_nothing_are_dropped():
    group = Group()
    group.table.load([ProducerRecord(producer=b"p", groups=ALONE, last_sn=4)])
    assert (len(group.table), group.table.sets) == (0, {})


# ------------------------------------------------------------------------------------------- two versions


@pytest.mark.parametrize("protocol", ["scalatom", "isis"])
def test_the_setting_is_unknown_until_every_node_knows_it(protocol):
    with pytest.raises(ValueError, match="no such setting: 'idempotence_producers'") as refused:
        catalogue.check_domain(protocol, {"idempotence_producers": "2048"}, CLIENTS_LEVEL - 1)
    assert "idempotence_producers" not in str(refused.value).partition(";")[2], "as older software says it"
    catalogue.check_domain(protocol, {"idempotence_producers": "2048"}, LEVEL)
    with pytest.raises(ValueError, match="1024 to 1048576"):
        catalogue.check_domain(protocol, {"idempotence_producers": "10"}, LEVEL)


def test_a_gateway_names_clients_once_every_node_understands_it():
    host = Host()
    assert [range_.client for range_ in host.submit("a", client="c1").header.ranges] == [b""]
    understood = DomainView()
    understood.CopyFrom(VIEW)
    understood.level = CLIENTS_LEVEL
    host.change(understood)
    ranges = [host.submit(group, client=client).header.ranges[0] for group, client in (("b", "c1"), ("c", "c2"))]
    assert [range_.client for range_ in ranges] == [label_of("c1"), label_of("c2")]


def test_all_streams_of_a_client_have_one_label():
    assert label_of("client/x/1") == label_of("client/x/2") != label_of("client/y/1")


def test_a_client_tells_whether_it_was_forgotten_from_whether_it_was_fenced():
    lane: Lane[int] = Lane(
        ("a",), ("a",), "p", is_open=True, is_known=True, epoch=1, next_sequence=5, last_receipt=4
    )
    assert lane.is_forgotten(1, 0)
    assert lane.is_forgotten(9, 0), "others with a higher epoch were forgotten, too"
    assert not lane.is_forgotten(2, 4), "that is ours"
    assert not lane.is_forgotten(3, 4), "somebody else opened"
    lane.last_receipt = 0
    assert not lane.is_forgotten(3, 0), "somebody else may have opened"
