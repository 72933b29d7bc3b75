"""From a client's request to the machine's and back: names, ids, tokens, owners, and what is for no machine."""

import asyncio
from types import SimpleNamespace

import pytest

from ordercast.client.session_tokens import merge
from ordercast.core.ids import pack_u64
from ordercast.core.limits import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, LOCATED_MAX, REQUEST_MESSAGES_MAX, Limits
from ordercast.core.session_token import tag_of
from ordercast.gateway.budgets import Budgets
from ordercast.gateway.clients import UNJUDGED_MAX, Client, Clients
from ordercast.gateway.freshness import Freshness
from ordercast.gateway.machine import Gateway
from ordercast.gateway.publishing import REPLIES_MAX, ROLE, Publishing, Replies, refused
from ordercast.gateway.settings import GatewaySettings
from ordercast.gateway.translation import Translation, Wrong, owner_of
from ordercast.protocols.scalatom.submission import ScalatomSubmission
from ordercast.runtime.process.settings import LimitSettings
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_FENCED,
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_MOVED,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PublishReply,
    PublishRequest,
    PublishStreamRequest,
)
from ordercast.v1.membership_pb2 import GROUP_STATE_ACTIVE, GROUP_STATE_DELETING, Group
from tests.unit.clock_tokens import ClockTokens
from tests.unit.directories import directory_of
from tests.unit.gateway_calls import context_of
from tests.unit.gateway_host import Host, status

KEY = b"the cluster's key"
CLOCK = pack_u64(77)


CELL = Group(
    name="cell-1", id="cell-1#4", domain="d", state=GROUP_STATE_ACTIVE, replicas=["s1", "s2", "s3"], revision=1
)


def make_node(**limits_):
    """As much of a node as is looked at. Groups a and b of domain d, and x of e, have cells; u and v share one."""
    alone = [
        Group(
            name=name, id=f"{name}#{number}", domain=domain, state=GROUP_STATE_ACTIVE, replicas=["s1", "s2", "s3"]
        )
        for number, (name, domain) in enumerate([("a", "d"), ("b", "d"), ("x", "e")], 1)
    ]
    shared = [
        Group(name=name, id=f"{name}#{number}", domain="d", state=GROUP_STATE_ACTIVE, cell=CELL.id)
        for number, name in enumerate("uv", 5)
    ]
    directory = directory_of([*alone, *shared], cells=[CELL], nodes=("s1", "s2", "s3"), domains=("d", "e"))
    settings = SimpleNamespace(limits=LimitSettings(**{"groups_max": 4, "producer_messages_max": 99, **limits_}))
    handed = []
    host = SimpleNamespace(hand_in=lambda *given: handed.append(given), handed=handed, stepped=0, goal=0)
    limits = Limits(settings.limits.table())
    return SimpleNamespace(key=KEY, directory=directory, settings=settings, host=host, client_limits=limits)


def request(*groups, producer=b"p", sequence=1, **fields):
    messages = [] if "open_token" in fields else [Message(payload=b"m")]
    return PublishRequest(producer=producer, groups=groups, first_sequence=sequence, messages=messages, **fields)


def replies_of(translation, identity):
    return Replies(translation, Client("client/1", identity), "client/1/1")


def wrong_with(translation, made, identity=None):
    before = made.SerializeToString()
    with pytest.raises(Wrong) as wrong:
        translation.to_machine(made, identity)
    assert made.SerializeToString() == before, "what is refused is not changed: it is told back"
    return wrong.value.status


# --------------------------------------------------------------------------------------------------- the way in


def test_names_become_ids_and_a_token_becomes_a_clock():
    translation = Translation(make_node())
    made = request("b", "a", session=ClockTokens(KEY).sign("d", CLOCK))
    assert translation.to_machine(made, None) == "d"
    assert list(made.groups) == ["b#2", "a#1"]
    assert (made.session, made.producer) == (CLOCK, b"p")


def test_the_key_is_the_one_that_came_with_the_registration():
    """A gateway's parts are made before it is registered, when there is no key yet."""
    node = make_node()
    node.key = b""
    translation = Translation(node)
    node.key = KEY
    reply = PublishReply(groups=["a#1"], session=CLOCK)
    assert ClockTokens(KEY).verify("d", translation.to_client(reply, None).session) == CLOCK


@pytest.mark.parametrize(
    "session",
    [b"x", CLOCK, CLOCK + bytes(16), tag_of("d") + CLOCK + bytes(16), ClockTokens(b"another").sign("d", CLOCK)],
)
def test_a_token_that_is_malformed_or_not_of_this_cluster_is_refused(session):
    assert wrong_with(Translation(make_node()), request("a", session=session)) == PUBLISH_STATUS_INVALID_ARGUMENT


def test_a_token_shows_what_was_seen_in_the_domain_and_nothing_else():
    seen = merge(ClockTokens(KEY).sign("d", CLOCK), ClockTokens(KEY).sign("e", pack_u64(99)))
    for group, shown in (("a", CLOCK), ("x", pack_u64(99))):
        made = request(group, session=seen)
        Translation(make_node()).to_machine(made, None)
        assert made.session == shown
    elsewhere = request("a", session=ClockTokens(KEY).sign("e", CLOCK))
    Translation(make_node()).to_machine(elsewhere, None)
    assert elsewhere.session == b""


@pytest.mark.parametrize(
    ("groups", "status"),
    [
        ((), PUBLISH_STATUS_INVALID_ARGUMENT),
        (("a", "nobody"), PUBLISH_STATUS_NOT_FOUND),
        (("",), PUBLISH_STATUS_NOT_FOUND),
        (("a#1",), PUBLISH_STATUS_NOT_FOUND),
        (("a", "x"), PUBLISH_STATUS_INVALID_ARGUMENT),
    ],
)
def test_destinations_that_cannot_be_are_refused(groups, status):
    assert wrong_with(Translation(make_node()), request(*groups)) == status


def test_the_state_of_a_group_is_for_its_machine_to_judge():
    node = make_node()
    node.directory.group_by_name["a"].state = GROUP_STATE_DELETING
    node.directory.nodes.clear()
    assert Translation(node).to_machine(request("b", "a"), None) == "d"


def test_a_request_with_too_much_is_refused_and_not_shown_back_as_a_whole():
    translation = Translation(make_node())
    assert translation.excess(request("a", producer=bytes(160)), "c") is None
    refusal = translation.excess(request(*["g" * 1000] * 5, producer=bytes(1 << 20), sequence=7), "c")
    assert refusal.status == PUBLISH_STATUS_INVALID_ARGUMENT
    assert refusal.detail == "producer of PublishRequest has a length of 1048576; at most 160"
    assert refusal.first_sequence == 7
    assert refusal.ByteSize() < 1000


@pytest.mark.parametrize(
    "payloads",
    [[b"m"] * 5, [b"m"] * BATCH_MESSAGES_MAX, [b"m", bytes(11)], [bytes(BATCH_BYTES_MAX // 2 - 8)] * 2],
    ids=["one too many", "as many as the SDK sends", "one too long", "as long as the SDK sends"],
)
def test_messages_that_may_come_again_one_by_one_are_for_the_machine_to_judge(payloads):
    """It keeps their place, so that nothing overtakes them. What is refused at the door has none."""
    small = {"envelope_messages_max": 4, "envelope_bytes_max": 100, "payload_bytes_max": 10}
    node = make_node(**small)
    publishing = Publishing(node, Translation(node), Freshness(node), Clients(), Budgets())
    replies = replies_of(publishing.translation, None)
    together = PublishRequest(
        producer=b"p", groups=["a"], first_sequence=1, messages=[Message(payload=payload) for payload in payloads]
    )
    assert (
        Limits(node.settings.limits.table()).of(together.DESCRIPTOR).violation(together, together.ByteSize()) == ""
    )
    assert publishing._fitting(replies, together) == [together]
    publishing._submit(replies, together)
    machine = Host(**small)
    ((_, _, handed),) = node.host.handed
    handed.groups[:] = ["a"]
    assert status(machine.receive("c1", handed)) == PUBLISH_STATUS_INVALID_ARGUMENT
    assert status(machine.publish("a", "b", producer=b"p")) == PUBLISH_STATUS_SEQUENCE_GAP


def test_far_too_many_messages_are_refused_at_the_door_and_all_of_them_are_answered():
    far_too_many = PublishRequest(producer=b"p", groups=["a"], messages=[Message()] * (REQUEST_MESSAGES_MAX + 1))
    refusal = Translation(make_node()).excess(far_too_many, "c")
    assert refusal.detail == "messages of PublishRequest has 16385 entries; at most 16384"
    assert refusal.count == REQUEST_MESSAGES_MAX + 1, "a client looks up by it what the answer is about"


def test_a_producer_belongs_to_who_authenticated():
    translation = Translation(make_node())
    mine, theirs = request("a"), request("a")
    translation.to_machine(mine, "me")
    translation.to_machine(theirs, "them")
    assert mine.producer != theirs.producer
    assert mine.producer == owner_of("me") + b"p"
    nameless = request("a", producer=b"")
    translation.to_machine(nameless, "me")
    assert nameless.producer == b"", "the machine refuses it, as it has no id"


# ----------------------------------------------------------------------------------------- groups that share cells


@pytest.mark.parametrize(
    ("groups", "cells", "addresses"),
    [
        (("u",), ("cell-1",), ["cell-1#4/u#5"]),
        (("v", "u"), ("cell-1",), ["cell-1#4/v#6", "cell-1#4/u#5"]),
        (("a", "u"), ("a", "cell-1"), ["a#1", "cell-1#4/u#5"]),
        (("a", "b"), ("a", "b"), ["a#1", "b#2"]),
    ],
)
def test_a_request_numbered_by_the_cells_of_its_groups_goes_to_their_addresses(groups, cells, addresses):
    made = request(*groups, cells=cells)
    assert Translation(make_node()).to_machine(made, None) == "d"
    assert list(made.groups) == addresses
    assert list(made.cells) == [], "an address says it already"


@pytest.mark.parametrize(
    ("groups", "cells"),
    [
        (("u",), ("cell-2",)),
        (("u",), ("u",)),
        (("a", "u"), ("cell-1",)),
        (("a",), ("cell-1",)),
        (("u",), ("cell-1", "a")),
    ],
)
def test_a_request_that_is_numbered_by_other_cells_is_refused_so_that_its_client_asks_again(groups, cells):
    """A group was deleted and made again elsewhere: new messages would be taken for old ones there."""
    assert wrong_with(Translation(make_node()), request(*groups, cells=cells)) == PUBLISH_STATUS_MOVED


def test_who_does_not_say_how_messages_to_a_shared_cell_are_numbered_is_told_to():
    translation = Translation(make_node())
    for groups in (("u",), ("a", "v")):
        assert wrong_with(translation, request(*groups)) == PUBLISH_STATUS_INVALID_ARGUMENT
    with pytest.raises(Wrong, match=r"say in `cells` .* \(a, cell-1\)"):
        translation.to_machine(request("a", "v"), None)


def test_a_refusal_tells_back_how_the_client_numbered():
    """It looks up by that what the refusal is about."""
    refusal = Translation(make_node()).refusal(
        request("u", cells=["elsewhere"]), Wrong(PUBLISH_STATUS_NOT_FOUND, "no"), "c"
    )
    assert (list(refusal.groups), list(refusal.cells)) == (["u"], ["elsewhere"])


def test_clients_are_told_in_which_cell_a_group_lives_and_of_no_cell_if_it_has_its_own_or_is_not_there():
    translation = Translation(make_node())
    places = {name: translation.place_of(name).cell for name in ("u", "v", "a", "nobody", "u#5")}
    assert places == {"u": "cell-1", "v": "cell-1", "a": "", "nobody": "", "u#5": ""}


def test_clients_are_told_places_in_the_order_in_which_they_ask():
    async def story():
        node = make_node()
        asked = []

        async def settle(names):
            asked.extend(names)

        publishing = Publishing(node, Translation(node), SimpleNamespace(settle=settle), Clients(), Budgets())
        replies = replies_of(publishing.translation, None)
        await publishing._locate(replies, ["v", "a"])
        assert asked == ["v", "a"], "a group that was made a moment ago may not be known here yet"
        assert [(place.group, place.cell) for place in replies.places] == [("v", "cell-1"), ("a", "")]
        assert replies.is_writing
        await replies.take()

    asyncio.run(story())


def test_frames_of_a_stream_may_ask_for_no_more_places_than_that():
    limits = Limits(LimitSettings().table())
    for count, is_refused in ((LOCATED_MAX, False), (LOCATED_MAX + 1, True)):
        frame = PublishStreamRequest(locate=["u"] * count)
        assert bool(limits.of(frame.DESCRIPTOR).violation(frame, frame.ByteSize())) == is_refused


# -------------------------------------------------------------------------------------------------- the way back


def test_a_reply_about_groups_of_a_cell_has_their_names_and_its_name():
    translation = Translation(make_node())
    reply = PublishReply(producer=b"p", groups=["a#1", "cell-1#4/u#5"], cells=["a#1", "cell-1#4"], session=CLOCK)
    for address, offset in (("a#1", 3), ("cell-1#4/u#5", 7)):
        reply.offsets.add(group=address, first_offset=offset)
    told = translation.to_client(reply, None)
    assert (list(told.groups), list(told.cells)) == (["a", "u"], ["a", "cell-1"])
    assert [(offset.group, offset.first_offset) for offset in told.offsets] == [("a", 3), ("u", 7)]
    assert ClockTokens(KEY).verify("d", told.session) == CLOCK
    assert translation.domain_of(told) == "d"


def test_a_reply_has_names_a_signed_token_and_the_producer_as_the_client_knows_it():
    translation = Translation(make_node())
    reply = PublishReply(producer=owner_of("me") + b"p", groups=["a#1", "b#2"], session=CLOCK)
    reply.offsets.add(group="a#1", first_offset=5)
    translation.to_client(reply, "me")
    assert list(reply.groups) == ["a", "b"]
    assert (reply.offsets[0].group, reply.producer) == ("a", b"p")
    assert ClockTokens(KEY).verify("d", reply.session) == CLOCK


@pytest.mark.parametrize("detail", ["group 'a' has no quorum", "a#1, b#22: no", "# 7"])
def test_a_text_from_the_machine_is_not_changed(detail):
    reply = PublishReply(groups=["a#1"], detail=detail)
    assert Translation(make_node()).to_client(reply, None).detail == detail


def test_one_reply_for_two_streams_is_translated_once():
    translation = Translation(make_node())
    reply = PublishReply(producer=owner_of("me") + b"p", groups=["a#1"], session=CLOCK)
    once = translation.to_client(reply, "me").SerializeToString()
    assert translation.to_client(reply, "me").SerializeToString() == once


def test_a_reply_about_a_group_that_is_gone_meanwhile_has_no_token():
    node = make_node()
    node.directory.group_by_name.clear()
    reply = Translation(node).to_client(PublishReply(groups=["a#1"], session=CLOCK), None)
    assert (list(reply.groups), reply.session) == (["a"], b"")


def test_a_refusal_tells_back_what_the_client_sent():
    """Also what looks like an id: it is the client's, and is not taken for the machine's."""
    node = make_node()
    publishing = Publishing(node, Translation(node), Freshness(node), Clients(), Budgets())
    replies = replies_of(publishing.translation, "me")
    publishing._submit(replies, request("a#1", producer=b"a long producer id", sequence=3))
    (reply,) = replies.waiting
    assert (list(reply.groups), reply.producer) == (["a#1"], b"a long producer id")
    assert (reply.first_sequence, reply.count, reply.credits) == (3, 1, 99)
    assert (reply.status, reply.detail) == (PUBLISH_STATUS_NOT_FOUND, "unknown group 'a#1'")
    assert node.host.handed == []


def test_replies_that_pile_up_close_the_way_in_until_they_are_taken():
    async def story():
        replies = replies_of(Translation(make_node()), None)
        for number in range(REPLIES_MAX):
            assert replies.room.is_set()
            replies(PublishReply(groups=["a#1"], first_sequence=number, status=PUBLISH_STATUS_OK))
        assert not replies.room.is_set()
        taken = await replies.take()
        assert [reply.first_sequence for reply in taken] == list(range(REPLIES_MAX))
        assert replies.room.is_set()

    asyncio.run(story())


# ------------------------------------------------------------------------------------------------------ too much


@pytest.mark.parametrize("retry_after_ms", [0, 20, 1500])
def test_a_single_call_is_told_when_to_come_back_as_a_stream_is(retry_after_ms):
    status = PUBLISH_STATUS_RESOURCE_EXHAUSTED if retry_after_ms else PUBLISH_STATUS_NOT_FOUND
    told = refused(PublishReply(status=status, retry_after_ms=retry_after_ms))
    assert told.retry_after_s == (retry_after_ms / 1000 if retry_after_ms else None)


def test_credits_are_what_the_machine_with_least_room_grants():
    node = make_node()
    translation = Translation(node)
    assert translation.credits() == 99
    translation.machines = {
        "d": Gateway("g", ScalatomSubmission, GatewaySettings(backlog_messages_first=7)),
        "e": Gateway("g", ScalatomSubmission),
    }
    assert translation.credits() == 7


class Pauses:
    """Publishing, and how long it did not read from clients after each chunk of requests."""

    def __init__(self, monkeypatch):
        self.node = make_node()
        self.publishing = Publishing(self.node, Translation(self.node), Freshness(self.node), Clients(), Budgets())
        self.replies = replies_of(self.publishing.translation, None)
        self.lengths = []
        sleep = asyncio.sleep

        async def no_sleep(length):
            if length:
                self.lengths.append(length)
            await sleep(0)

        monkeypatch.setattr("ordercast.gateway.publishing.asyncio.sleep", no_sleep)

    async def take(self, *requests):
        await self.publishing._take(self.replies, requests)

    def refuse(self, *_):
        """As the machine would."""
        self.replies(PublishReply(groups=["a#1"], status=PUBLISH_STATUS_RESOURCE_EXHAUSTED, retry_after_ms=300))


def test_a_client_that_writes_on_after_a_refusal_is_not_read_from_for_a_while(monkeypatch):
    async def story():
        pauses = Pauses(monkeypatch)
        await pauses.take(request("a"), request("a", sequence=2))
        assert pauses.lengths == [], "nothing was refused"
        pauses.node.host.hand_in = pauses.refuse
        await pauses.take(request("a"), request("a", sequence=2))
        assert len(pauses.lengths) == 1
        await asyncio.gather(*(pauses.take(request("a")) for _ in range(100)))
        assert len(pauses.lengths) == 101
        assert min(pauses.lengths) < max(pauses.lengths) == 0.3, "with many such longer, but no longer than told"
        await pauses.take(request("a"))
        assert pauses.lengths[-1] == pauses.lengths[0]

    asyncio.run(story())


def test_a_client_that_is_refused_a_few_of_many_requests_is_read_from_at_once(monkeypatch):
    async def story():
        pauses = Pauses(monkeypatch)
        await pauses.take(request(), request("a"), request("b"))
        assert (pauses.replies.refused, pauses.lengths) == (1, [])

    asyncio.run(story())


def test_machines_hear_that_a_client_is_gone_which_they_refused_something():
    node = make_node()
    told = []
    node.host.endpoints = {}
    node.host.clock = SimpleNamespace(read=lambda: (0.0, 0.0))
    node.host.tell = lambda *given: told.append(given)
    node.settings.tls = SimpleNamespace(client_ca=None)
    translation = Translation(node)
    translation.machines = {"d": Gateway("g", ScalatomSubmission)}
    publishing = Publishing(node, translation, Freshness(node), Clients(), Budgets())
    context = SimpleNamespace(auth_context=dict, peer=lambda: "ipv4:127.0.0.1:1")
    with publishing._connected(context):
        pass
    assert told == []
    with publishing._connected(context) as replies:
        replies(PublishReply(groups=["a#1"], status=PUBLISH_STATUS_RESOURCE_EXHAUSTED))
    ((domain, role, event),) = told
    assert (domain, role, event.process) == ("d", ROLE, replies.source)


# ------------------------------------------------------------------------------------------------------ clients


def test_streams_of_a_connection_are_one_client_and_those_of_an_identity_too():
    clients = Clients()
    with (
        clients.present(context_of("ipv4:10.0.0.1:5")) as first,
        clients.present(context_of("ipv4:10.0.0.1:5")) as again,
        clients.present(context_of("ipv4:10.0.0.1:6")) as other,
        clients.present(context_of("ipv4:10.0.0.1:7", "me")) as me,
        clients.present(context_of("ipv4:10.0.0.2:7", "me")) as me_elsewhere,
    ):
        assert first is again
        assert me is me_elsewhere
        assert len({first.name, other.name, me.name}) == 3
    with clients.present(context_of("ipv4:10.0.0.1:5")) as later:
        assert later is not first, "nothing is remembered of a client without a call"


class Stepping:
    """As much of a host as a client looks at: events are stepped when the test says so."""

    def __init__(self):
        self.stepped = self.goal = 0
        self._moved = asyncio.Event()

    async def caught_up(self, goal):
        while self.stepped < goal:
            await self._moved.wait()

    def step(self):
        self.stepped = self.goal
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


def test_however_many_calls_a_client_has_few_of_its_requests_wait_to_be_judged():
    async def story():
        host, client, handed = Stepping(), Client("client/1", None), []

        async def call(number):
            await client.room(host, 1)
            host.goal += 1
            client.handed(host, 1)
            handed.append(number)

        calls = [asyncio.create_task(call(number)) for number in range(3 * UNJUDGED_MAX)]
        while not all(task.done() for task in calls):
            before = len(handed)
            host.step()
            for _ in range(10 * UNJUDGED_MAX):
                await asyncio.sleep(0)
            assert 0 < len(handed) - before <= UNJUDGED_MAX
        assert handed == list(range(3 * UNJUDGED_MAX)), "in their turn"

    asyncio.run(story())


# ---------------------------------------------------------------------------------------------------- refusals


def test_a_request_that_is_for_no_machine_holds_nothing_up():
    node = make_node()
    publishing = Publishing(node, Translation(node), Freshness(node), Clients(), Budgets())
    replies = replies_of(publishing.translation, None)
    for made in (request("nobody"), request("a", "x"), request("a")):
        publishing._submit(replies, made)
    assert [reply.status for reply in replies.waiting] == [
        PUBLISH_STATUS_NOT_FOUND,
        PUBLISH_STATUS_INVALID_ARGUMENT,
    ]
    assert [list(made.groups) for _, _, made in node.host.handed] == [["a#1"]]


def test_each_identity_owns_its_producers_and_none_owns_nothing():
    assert owner_of("me") != owner_of("you")
    assert owner_of(None) == b""


@pytest.mark.parametrize("status", [PUBLISH_STATUS_SEQUENCE_GAP, PUBLISH_STATUS_FENCED])
def test_a_single_call_that_is_refused_says_where_its_producer_stands(status):
    refusal = refused(PublishReply(status=status, epoch=3, last_sequence=41, session=CLOCK))
    assert refusal.metadata == {"epoch": "3", "last_sequence": "41"}


def test_a_gap_that_the_groups_did_not_see_says_nothing_of_the_producer():
    assert refused(PublishReply(status=PUBLISH_STATUS_SEQUENCE_GAP)).metadata == {}
