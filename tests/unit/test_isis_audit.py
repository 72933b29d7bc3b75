"""What is judged about virtually synchronous groups: a right history passes, and whatever is wrong is seen."""

import copy
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast.core.ids import envelope_id, group_name, pack_u64
from ordercast.local import verify as verifying
from ordercast.local.audit import audit
from ordercast.local.casts import CastLog, Named
from ordercast.local.evidence import Acknowledged, Evidence, SentMessage, messages_of
from ordercast.local.verify import Report, Verifier
from ordercast.protocols.isis.stamps import StampCodec
from ordercast.v1.common_pb2 import (
    Batch,
    Destination,
    Envelope,
    Header,
    Message,
    ProducerRange,
    RangeOutcome,
    Span,
)
from ordercast.v1.gateway_pb2 import (
    Deliveries,
    DescribeClusterResponse,
    DescribeGroupResponse,
    ReplicaStatus,
    SubscribeResponse,
)
from ordercast.v1.isis_pb2 import CastKey, CastStamp, GroupTime
from ordercast.v1.membership_pb2 import GROUP_STATE_ACTIVE, Domain, Group
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, LogEntry
from tests.unit.causal_stamps import restamping

REPLICAS = ("n1", "n2", "n3")
A, B = "a#1", "b#2"
IDS = {"a": A, "b": B}

#: "1:0.3": view 1, the caster in place 0, its third cast. What it comes after: {"a": "1:0.2 1:1.1"}
Past = dict[str, str]


def parse(cast: str) -> tuple[int, int, int]:
    view, _, rest = cast.partition(":")
    member, _, number = rest.partition(".")
    return int(view), int(member), int(number)


def times_of(past: Past) -> list[GroupTime]:
    found = []
    for group in sorted(past):
        casts = sorted(map(parse, past[group].split()))
        members, counts = [member for _, member, _ in casts], [number for _, _, number in casts]
        found.append(GroupTime(group=IDS[group], view=casts[0][0], members=members, counts=counts))
    return found


class Story:
    """What clients sent, what the logs came to, and what clients were told of it."""

    def __init__(self, ordering: str = "causal") -> None:
        self.ordering = ordering
        self.evidence = Evidence()
        self.sequences: dict[tuple[bytes, str], int] = {}
        self.numbers: dict[bytes, tuple[bytes, int]] = {}
        for id_ in IDS.values():
            self.evidence.domains[id_] = Domain(name="d", protocol="isis", settings={"ordering": ordering})
            self.evidence.logs[id_] = {replica: [] for replica in REPLICAS}

    def send(
        self, payload: str, groups: str, *, producer: str = "p", unordered: bool = False, after: str = ""
    ) -> None:
        """To "ab", for example, by one who had seen the messages in `after`."""
        sequence = self.sequences[producer.encode(), groups] = (
            self.sequences.get((producer.encode(), groups), 0) + 1
        )
        self.numbers[payload.encode()] = (producer.encode(), sequence)
        index = len(self.evidence.sent)
        seen = tuple(one.encode() for one in after.split())
        self.evidence.sent[payload.encode()] = SentMessage(payload.encode(), index, tuple(groups), unordered, seen)

    def log(self, group: str, cast: str, payload: str = "", past: Past | None = None, **fields: Any) -> None:
        """The next entry, at all replicas; without a payload it is one that shows nothing new."""
        log = self.evidence.logs[IDS[group]]
        entry = self.entry(group, log[REPLICAS[0]], cast, payload, past or {}, **fields)
        for entries in log.values():
            entries.append(copy.deepcopy(entry))

    def entry(
        self, group: str, before: list[LogEntry], cast: str, payload: str, past: Past, carried: Past | None = None
    ) -> LogEntry:
        position, offset = len(before), sum(len(messages_of(one)) for one in before)
        view, member, number = parse(cast)
        header = Header(id=envelope_id(1, position), destinations=[Destination(group=IDS[group])])
        entry = LogEntry(order_key=pack_u64(position), first_offset=offset)
        if payload:
            producer, sequence = self.numbers[payload.encode()]
            groups = [IDS[name] for name in self.evidence.sent[payload.encode()].groups]
            header.ClearField("destinations")
            header.destinations.extend(Destination(group=id_) for id_ in groups)
            header.ranges.append(ProducerRange(producer=producer, first_sequence=sequence, count=1))
            span = Span(first_sequence=sequence, count=1, first_offset=offset, order_key=pack_u64(position))
            entry.outcomes.append(RangeOutcome(spans=[span]))
        body = Batch(messages=[Message(payload=payload.encode())] if payload else []).SerializeToString()
        entry.envelope.CopyFrom(Envelope(header=header, body=body))
        stamp = CastStamp(
            view=view,
            key=CastKey(member=member, number=number),
            times=times_of(past),
            carried=times_of(carried or {}),
            total=self.ordering == "total",
        )
        entry.protocol = stamp.SerializeToString()
        return entry

    def tell(self) -> Evidence:
        """Everything is acknowledged, and read to the end by a subscriber."""
        for id_, log in self.evidence.logs.items():
            name = group_name(id_)
            seen = self.evidence.seen.setdefault(("reader", name), [])
            for entry in log[REPLICAS[0]]:
                for offset, payload, _ in messages_of(entry):
                    seen.append((offset, payload))
                    receipt = self.evidence.receipts.setdefault(
                        payload, Acknowledged(entry.order_key, {}, duplicate=False)
                    )
                    receipt.offsets[name] = offset
        return self.evidence


def right_story(ordering: str = "causal") -> Story:
    """m1 in a, answered in b; m3 to both; a view change in a; and then p goes on in a, where q has answered."""
    story = Story(ordering)
    story.send("m1", "a")
    story.send("m2", "b", after="m1")
    story.send("m3", "ab", producer="q")
    story.send("m4", "a", after="m2")
    story.send("m5", "a", producer="r", after="m3")
    story.send("m6", "a", after="m4 m5")
    story.log("a", "1:0.1", "m1")
    story.log("a", "1:1.1", "m3", {"a": "1:0.1"})
    story.log("a", "1:1.2")
    story.log("b", "1:0.1", "m2", {"a": "1:0.1"})
    story.log("b", "1:2.1", "m3")
    story.log("a", "2:0.1", "m4", {"b": "1:0.1"})
    story.log("a", "2:1.1", "m5", {}, carried={"b": "1:2.1"})
    story.log("a", "2:0.2", "m6", {"a": "2:1.1", "b": "1:0.1 1:2.1"})
    return story


def right() -> Evidence:
    return right_story().tell()


def each(evidence: Evidence, group: str) -> Iterator[list[LogEntry]]:
    yield from evidence.logs[IDS[group]].values()


def put_in_order(evidence: Evidence, group: str, payloads: str) -> None:
    """The same entries in another order, with places to match: nobody but the order is wrong."""
    wanted = [payload.encode() for payload in payloads.split()]
    for entries in each(evidence, group):
        by_payload = {messages_of(entry)[0][1]: entry for entry in entries if messages_of(entry)}
        entries[:] = [by_payload[payload] for payload in wanted]
        for position, entry in enumerate(entries):
            entry.order_key, entry.first_offset = pack_u64(position), position
            entry.outcomes[0].spans[0].first_offset = position
            entry.outcomes[0].spans[0].order_key = pack_u64(position)
    evidence.seen[("reader", group)] = list(enumerate(wanted))
    for position, payload in enumerate(wanted):
        evidence.receipts[payload].offsets[group] = position
        if evidence.sent[payload].groups[0] == group:
            evidence.receipts[payload].order_key = pack_u64(position)


def forget_stamps(evidence: Evidence) -> None:
    """They name nothing any more, and number what is there: what is left to judge is what clients saw."""
    for id_ in evidence.logs:
        for entries in evidence.logs[id_].values():
            for number, entry in enumerate(entries, start=1):
                stamp = CastStamp(view=1, key=CastKey(member=0, number=number))
                entry.protocol = stamp.SerializeToString()


def test_a_right_history_is_clean() -> None:
    verdict = audit(right())
    assert verdict.is_clean, verdict.findings
    assert not verdict.findings
    assert verdict.acknowledged == 6


def test_a_right_history_of_a_total_domain_is_clean() -> None:
    story = Story("total")
    story.send("m1", "a")
    story.send("m2", "b", after="m1")
    story.log("a", "1:0.1", "m1")
    story.log("b", "1:0.1", "m2", {"a": "1:0.1"})
    verdict = audit(story.tell())
    assert verdict.is_clean, verdict.findings


def test_a_replica_that_is_behind_is_no_disagreement() -> None:
    evidence = right()
    del evidence.logs[A]["n3"][2:]
    assert audit(evidence).is_clean


# ----------------------------------------------------------------------------------------- evidence that is wrong

Break = Callable[[Evidence], None]
#: What is done to the evidence, which count rises, and what the finding says.
MUTANTS: dict[str, tuple[Break, str, str]] = {}


def mutant(count: str, text: str) -> Callable[[Break], Break]:
    def register(break_: Break) -> Break:
        MUTANTS[break_.__name__.replace("_", " ")] = (break_, count, text)
        return break_

    return register


@mutant("lost", "b'm4' has a receipt and is not in a")
def an_acknowledged_message_is_in_no_log(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        del entries[3:]


@mutant("order_violations", "its receipt says 7")
def a_receipt_shows_another_offset(evidence: Evidence) -> None:
    evidence.receipts[b"m4"].offsets["a"] = 7


@mutant("order_violations", "shows an order key that it has nowhere")
def a_receipt_shows_another_key(evidence: Evidence) -> None:
    evidence.receipts[b"m4"].order_key = pack_u64(77)


@mutant("duplicated", "is in a#1 at 0 and")
def a_message_is_there_twice(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        again = copy.deepcopy(entries[0])
        again.order_key, again.first_offset = pack_u64(len(entries)), 5
        again.outcomes[0].spans[0].first_offset = 5
        entries.append(again)


@mutant("order_violations", "n1 and n2 differ at position 1 of a#1")
def two_replicas_have_two_orders(evidence: Evidence) -> None:
    entries = evidence.logs[A]["n2"]
    entries[0], entries[1] = copy.deepcopy(entries[1]), copy.deepcopy(entries[0])
    for position, entry in enumerate(entries[:2]):
        entry.order_key = pack_u64(position)


@mutant("order_violations", "n1 and n3 differ at position 4 of a#1")
def two_replicas_have_two_stamps(evidence: Evidence) -> None:
    with restamping(evidence.logs[A]["n3"][4]) as stamp:
        stamp.epoch = 9


@mutant("order_violations", "n2 has position 0 of a#1 behind 1")
def a_replica_shows_its_log_backwards(evidence: Evidence) -> None:
    entries = evidence.logs[A]["n2"]
    entries[0], entries[1] = entries[1], entries[0]


@mutant("lost", "reader misses a:1 to 1")
def a_subscriber_misses_one(evidence: Evidence) -> None:
    del evidence.seen[("reader", "a")][1]


@mutant("duplicated", "reader sees a:1 again")
def a_subscriber_sees_one_again(evidence: Evidence) -> None:
    seen = evidence.seen[("reader", "a")]
    seen.insert(2, seen[1])


@mutant("order_violations", "where the log has another message")
def a_subscriber_sees_something_else(evidence: Evidence) -> None:
    evidence.seen[("reader", "a")][1] = (1, b"m6")


@mutant("order_violations", "b'm3' is in a#1 and not in b#2")
def a_message_without_a_receipt_is_in_one_of_its_two_groups(evidence: Evidence) -> None:
    del evidence.receipts[b"m3"], evidence.seen[("reader", "b")][1]
    for entries in each(evidence, "b"):
        del entries[1]
    for entries in each(evidence, "a"):
        # Nothing comes after it: that it is missing would be seen by that, too.
        for entry in entries[4:]:
            with restamping(entry) as stamp:
                stamp.ClearField("carried")
                stamp.ClearField("times")


@mutant("order_violations", "b'm3' is in a#1 and not in b#2")
def the_two_groups_know_a_message_by_two_numbers(evidence: Evidence) -> None:
    for entries in each(evidence, "b"):
        entries[1].envelope.header.ranges[0].first_sequence = 2
        entries[1].outcomes[0].spans[0].first_sequence = 2


@mutant("order_violations", "nobody sent it")
def somebody_else_wrote_into_the_log(evidence: Evidence) -> None:
    del evidence.sent[b"m2"], evidence.receipts[b"m2"]


@mutant("order_violations", "was sent to")
def a_message_has_other_destinations_than_it_was_sent_to(evidence: Evidence) -> None:
    for entries in each(evidence, "b"):
        entries[0].envelope.header.destinations.add(group=A)


@mutant("order_violations", "number 1 of its set, behind number 2")
def a_producer_is_overtaken_by_itself(evidence: Evidence) -> None:
    evidence.sent[b"m4"].after = evidence.sent[b"m6"].after = ()
    put_in_order(evidence, "a", "m4 m3 m1 m5 m6")
    forget_stamps(evidence)


@mutant("order_violations", "number 3 of its set, behind number 1")
def a_message_of_a_producer_is_left_out(evidence: Evidence) -> None:
    del evidence.sent[b"m4"], evidence.receipts[b"m4"]
    put_in_order(evidence, "a", "m1 m3 m5 m6")
    forget_stamps(evidence)


@mutant("order_violations", "behind what its producer sent later")
def a_producer_is_overtaken_by_itself_in_another_set(evidence: Evidence) -> None:
    for entries in (*each(evidence, "a"), *each(evidence, "b")):
        for entry in entries:
            for range_ in entry.envelope.header.ranges:
                range_.producer = b"p" if range_.producer == b"q" else range_.producer
    evidence.sent[b"m5"].after = evidence.sent[b"m6"].after = ()
    put_in_order(evidence, "a", "m1 m4 m3 m5 m6")
    forget_stamps(evidence)


@mutant("order_violations", "a has b'm5' before b'm3', which its sender had seen")
def an_answer_comes_before_what_its_sender_had_seen(evidence: Evidence) -> None:
    put_in_order(evidence, "a", "m1 m5 m3 m4 m6")
    forget_stamps(evidence)


@mutant("order_violations", "a has b'm4' before b'm1', which its sender had seen")
def an_answer_to_an_answer_in_another_group_comes_first(evidence: Evidence) -> None:
    for payload in (b"m1", b"m4", b"m6"):
        evidence.sent[payload].unordered = True
    for entries in each(evidence, "a"):
        entries[3].envelope.header.ranges[0].producer = b"s"
        entries[3].envelope.header.ranges[0].first_sequence = 1
        entries[3].outcomes[0].spans[0].first_sequence = 1
        entries[5].envelope.header.ranges[0].first_sequence = 2
        entries[5].outcomes[0].spans[0].first_sequence = 2
    put_in_order(evidence, "a", "m4 m1 m3 m5 m6")
    forget_stamps(evidence)


@mutant("order_violations", "comes after b#2/1:2.1, which is lost")
def what_somebody_answered_to_in_another_group_is_gone(evidence: Evidence) -> None:
    for entries in each(evidence, "b"):
        with restamping(entries[1]) as stamp:
            stamp.key.member, stamp.key.number = 0, 2


@mutant("order_violations", "what is at position 4 comes after b#2/1:2.7, which is lost")
def what_a_cast_carries_along_is_gone(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        with restamping(entries[4]) as stamp:
            stamp.carried[0].counts[0] = 7


@mutant("order_violations", "comes after a#1/2:1.1, which is not before it")
def what_an_entry_comes_after_in_its_own_group_is_behind_it(evidence: Evidence) -> None:
    evidence.sent[b"m6"].after = (b"m4",)
    put_in_order(evidence, "a", "m1 m3 m4 m6 m5")


@mutant("order_violations", "a#1/3:1.1, of a later view")
def an_entry_comes_after_one_of_a_later_view(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        with restamping(entries[5]) as stamp:
            stamp.times[0].view = 3


@mutant("order_violations", "view 1 comes behind view 2")
def a_view_comes_back(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        with restamping(entries[4]) as stamp:
            stamp.view, stamp.key.number = 1, 3
        with restamping(entries[5]) as stamp:
            stamp.times[0].view = 1


@mutant("order_violations", "is there without number 1 of its caster")
def the_first_cast_of_a_member_is_gone(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        with restamping(entries[4]) as stamp:
            stamp.key.number = 2


@mutant("order_violations", "comes behind number 1 of its caster")
def a_cast_is_in_the_log_twice(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        with restamping(entries[5]) as stamp:
            stamp.key.number = 1


@mutant("order_violations", "an ABCAST at position 0 is not what the domain is for")
def a_cast_in_a_causal_domain_was_ordered(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        with restamping(entries[0]) as stamp:
            stamp.total = True


@mutant("order_violations", "says nothing of where it comes from")
def an_entry_has_no_stamp(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        entries[5].ClearField("protocol")


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_wrong_evidence_is_noticed(name: str) -> None:
    break_, count, text = MUTANTS[name]
    evidence = right()
    break_(evidence)
    verdict = audit(evidence)
    assert getattr(verdict, count) > 0, verdict
    assert any(text in finding for finding in verdict.findings), verdict.findings


def test_a_message_to_several_groups_in_a_total_domain_is_an_order_that_nobody_promised() -> None:
    evidence = right_story("total").tell()
    evidence.domains[A].settings["ordering"] = "causal"
    assert any("is not what the domain is for" in finding for finding in audit(evidence).findings)


def test_evidence_of_other_domains_is_judged_beside_it() -> None:
    """Groups without a domain that is known are ordered by SCALATOM: an 8-byte key is nothing there."""
    evidence = right()
    evidence.logs["c#3"] = {"n1": []}
    assert audit(evidence).is_clean


# ------------------------------------------------------------------------------------ logs that are shown in part


def shown(story: Story, group: str) -> list[LogEntry]:
    """As readers see a log: without what has no new message."""
    return [entry for entry in story.evidence.logs[IDS[group]]["n1"] if messages_of(entry)]


def taken(entries: list[LogEntry], group: str = "a", *, is_whole: bool = True) -> tuple[CastLog, list[str]]:
    log = CastLog(IDS[group], StampCodec(), is_whole)
    return log, [problem for entry in entries for problem in log.take(entry)]


def test_a_cast_that_readers_are_not_shown_may_be_where_a_position_is_missing() -> None:
    log, problems = taken(shown(right_story(), "a"))
    assert not problems
    # It is 1:1.2, at position 2, between two views.
    assert not log.lacks(Named(A, 1, 1, 2))
    assert log.lacks(Named(A, 1, 1, 3))
    assert not log.lacks(Named(A, 2, 2, 1))
    assert log.lacks(Named(A, 3, 0, 1))
    assert not log.lacks(Named(A, 3, 0, 1), end=7)
    assert log.lacks(Named(A, 1, 1, 3), end=7)


def test_where_all_entries_are_shown_nothing_can_hide() -> None:
    log, problems = taken(right_story().evidence.logs[A]["n1"])
    assert not problems
    assert not log.lacks(Named(A, 1, 1, 2))
    assert log.lacks(Named(A, 2, 2, 1))


def test_more_casts_are_left_out_than_there_are_positions_for() -> None:
    entries = shown(right_story(), "a")
    with restamping(entries[3]) as stamp:
        stamp.key.number = 3
    _, problems = taken(entries)
    assert any("is there without number 1 of its caster" in problem for problem in problems)


def test_a_position_before_a_cast_hides_nothing_that_comes_behind_it() -> None:
    story = Story()
    story.send("m1", "a")
    story.send("m2", "a")
    story.log("a", "1:1.1")
    story.log("a", "1:0.1", "m1")
    story.log("a", "1:0.2", "m2")
    entries = shown(story, "a")
    log, problems = taken(entries)
    assert not problems
    assert not log.lacks(Named(A, 1, 1, 1))
    assert log.lacks(Named(A, 1, 0, 3))
    with restamping(entries[1]) as stamp:
        stamp.key.number = 3
    _, problems = taken(entries)
    assert problems == ["cast 1:0.3 at position 2 is there without number 2 of its caster"]


def test_a_cast_that_was_taken_for_hidden_and_comes_later_is_noticed() -> None:
    story = Story()
    for payload, producer in (("m1", "p"), ("m2", "q"), ("m3", "r")):
        story.send(payload, "a", producer=producer)
    story.log("a", "1:0.1", "m1")
    story.log("a", "1:2.1")
    story.log("a", "1:0.2", "m2", {"a": "1:1.1"})
    story.log("a", "1:1.1", "m3")
    _, problems = taken(shown(story, "a"))
    assert problems == ["cast 1:1.1 at position 3 comes behind one that comes after it"]


def test_what_retention_dropped_is_not_missed() -> None:
    entries = right_story().evidence.logs[A]["n1"][1:]
    log, problems = taken(entries, is_whole=False)
    assert not problems
    assert not log.lacks(Named(A, 1, 0, 9))
    assert not log.lacks(Named(A, 1, 1, 1))
    assert log.lacks(Named(A, 1, 1, 3))
    _, problems = taken(entries)
    # The first position may have been any cast, but not this one's predecessor and two others.
    assert not problems


def test_what_retention_left_is_judged() -> None:
    entries = right_story().evidence.logs[A]["n1"][1:]
    with restamping(entries[-1]) as stamp:
        stamp.times[0].counts[0] = 2
    _, problems = taken(entries, is_whole=False)
    assert any("comes after a#1/2:1.2, which is not before it" in problem for problem in problems)


# ------------------------------------------------------------------------------------------------- the verifier


class Gateway:
    """Answers as a gateway does that has these logs. A look at a group may find more than the one before."""

    def __init__(self, logs: dict[str, list[LogEntry]], later: dict[str, list[LogEntry]] | None = None) -> None:
        self.logs = logs
        self.later = later or {}
        self.of_replica: dict[tuple[str, str], list[LogEntry]] = {}
        self.groups = [
            Group(
                name=group_name(id_),
                id=id_,
                domain="d",
                replicas=REPLICAS,
                placement=REPLICAS,
                state=GROUP_STATE_ACTIVE,
            )
            for id_ in logs
        ]

    def DescribeCluster(self, request: Any, timeout: float) -> DescribeClusterResponse:  # noqa: N802
        return DescribeClusterResponse(groups=self.groups, domains=[Domain(name="d", protocol="isis")])

    def DescribeGroup(self, request: Any, timeout: float) -> DescribeGroupResponse:  # noqa: N802
        group = next(group for group in self.groups if group.name == request.name)
        entries = self.logs[group.id]
        position = int.from_bytes(entries[-1].order_key, "big") + 1 if entries else 0
        log = DescribeReplicaResponse(position=position, first_offset=entries[0].first_offset if entries else 0)
        return DescribeGroupResponse(
            group=group, replicas=[ReplicaStatus(node=replica, log=log) for replica in REPLICAS]
        )

    def Subscribe(self, requests: Iterator[Any]) -> Iterator[SubscribeResponse]:  # noqa: N802
        start = next(requests).start
        id_ = next(group.id for group in self.groups if group.name == start.group)
        entries = self.of_replica.get((id_, start.replica), self.logs[id_])
        if not start.replica:
            entries = [*entries, *self.later.pop(id_, [])]
            self.logs[id_] = entries
        new = [entry for entry in entries if messages_of(entry)]
        yield SubscribeResponse(deliveries=Deliveries(entries=[entry.SerializeToString() for entry in new]))


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch) -> Callable[[Gateway], Report]:
    monkeypatch.setattr(verifying, "LOOK_S", 0.0)

    def run(gateway: Gateway) -> Report:
        verifier = Verifier(SimpleNamespace(stream_stream=None, unary_unary=None, unary_stream=None))
        verifier.stub = gateway
        return verifier.run()

    monkeypatch.setattr(verifying, "GatewayServiceStub", lambda channel: None)
    return run


def leave_out_a_sequence(entry: LogEntry) -> None:
    entry.envelope.header.ranges[0].first_sequence += 1
    entry.outcomes[0].spans[0].first_sequence += 1


def whole(story: Story) -> dict[str, list[LogEntry]]:
    return {id_: log["n1"] for id_, log in story.evidence.logs.items()}


def test_logs_of_a_right_history_are_verified(verify: Callable[[Gateway], Report]) -> None:
    report = verify(Gateway(whole(right_story())))
    assert report.is_ok, report.problems
    assert report.is_complete
    assert [(group.group, group.messages) for group in report.groups] == [("a", 5), ("b", 2)]


def test_what_comes_while_others_are_read_is_looked_for_again(verify: Callable[[Gateway], Report]) -> None:
    """m3 is shown in a, and m6, that comes after it, before b shows it."""
    logs = whole(right_story())
    later = {B: logs[B][1:]}
    del logs[B][1:]
    report = verify(Gateway(logs, later))
    assert report.is_ok, report.problems


def set_view(entry: LogEntry, view: int) -> None:
    with restamping(entry) as stamp:
        stamp.view = view


def set_view_of_past(entry: LogEntry, view: int) -> None:
    with restamping(entry) as stamp:
        stamp.times[0].view = view


@pytest.mark.parametrize(
    ("break_", "text"),
    [
        (lambda logs: logs[B].pop(), "message 1 of producer 71 to a#1, b#2, and b#2 does not"),
        (lambda logs: logs[B].pop(), "comes after b#2/1:2.1, which is not in its log"),
        (lambda logs: logs[A].pop(3), "offsets 2 to 3 are missing"),
        (lambda logs: set_view(logs[A][3], 3), "a: view 2 comes behind view 3"),
        (lambda logs: set_view_of_past(logs[A][5], 4), "of a later view"),
        (lambda logs: logs[A][0].ClearField("protocol"), "says nothing of where it comes from"),
        (lambda logs: setattr(logs[A][4], "order_key", b"\0" * 24), "does not rise"),
        (lambda logs: logs[B][0].envelope.header.destinations.pop(), "is not for it"),
        (lambda logs: leave_out_a_sequence(logs[A][3]), "producer 70 continues 1 with 3"),
    ],
)
def test_logs_that_cannot_be_are_problems(
    verify: Callable[[Gateway], Report], break_: Callable[[dict[str, list[LogEntry]]], Any], text: str
) -> None:
    logs = whole(right_story())
    break_(logs)
    report = verify(Gateway(logs))
    assert not report.is_ok
    assert any(text in problem for problem in report.problems), report.problems


def test_replicas_that_disagree_are_a_problem(verify: Callable[[Gateway], Report]) -> None:
    gateway = Gateway(whole(right_story()))
    other = copy.deepcopy(gateway.logs[A])
    with restamping(other[4]) as stamp:
        stamp.epoch = 3
    gateway.of_replica[A, "n2"] = other
    report = verify(gateway)
    assert any("a: n1 has" in problem and "n2 has" in problem for problem in report.problems), report.problems


def test_a_group_that_lost_its_beginning_to_retention_lacks_nothing(verify: Callable[[Gateway], Report]) -> None:
    """m3 is left in b alone, and what a's entries come after is not in b any more, but for the last."""
    logs = whole(right_story())
    del logs[A][:3]
    report = verify(Gateway(logs))
    assert report.is_ok, report.problems


def two_to_both() -> dict[str, list[LogEntry]]:
    story = Story()
    for number in (1, 2, 3):
        story.send(f"m{number}", "ab")
        story.log("a", f"1:0.{number}", f"m{number}")
        story.log("b", f"1:1.{number}", f"m{number}")
    return whole(story)


def renumbered(entries: list[LogEntry], *, is_whole: bool) -> list[LogEntry]:
    """As if what is left were all there ever was, or what retention left."""
    for number, entry in enumerate(entries, start=0 if is_whole else 1):
        entry.order_key, entry.first_offset = pack_u64(number), number
        entry.outcomes[0].spans[0].first_offset = number
        with restamping(entry) as stamp:
            stamp.key.number = number + 1
    return entries


@pytest.mark.parametrize(("left", "missing"), [(slice(0, 2), 3), (slice(1, 3), 1)])
def test_one_of_several_messages_to_both_groups_is_in_one_of_them(
    verify: Callable[[Gateway], Report], left: slice, missing: int
) -> None:
    logs = two_to_both()
    logs[B] = renumbered(logs[B][left], is_whole=True)
    report = verify(Gateway(logs))
    assert report.problems == [f"a#1 has message {missing} of producer 70 to a#1, b#2, and b#2 does not"]


def test_the_first_of_several_messages_to_both_groups_is_dropped_by_retention_in_one(
    verify: Callable[[Gateway], Report],
) -> None:
    logs = two_to_both()
    logs[B] = renumbered(logs[B][1:], is_whole=False)
    report = verify(Gateway(logs))
    assert report.is_ok, report.problems
