"""ToTo's process machine, piece by piece: settings, what others may say, what is dropped, what a page names."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.view import View
from ordercast.protocols.celllog.setting_texts import InvalidSettings
from ordercast.protocols.toto import checking, settings
from ordercast.protocols.toto.era import Era, begin_of, message_of
from ordercast.protocols.toto.protocol import TOTO
from ordercast.sim.toto.stage import Stage
from ordercast.v1.common_pb2 import Destination, Envelope, Header
from ordercast.v1.membership_pb2 import DomainView, ProcessView
from ordercast.v1.toto_pb2 import DagBegin, DagFlush, DagMessage

MEMBERS = ("n1", "n2", "n3")
ID = bytes(16)


def vote(number: int = 1, vector: tuple[int, ...] = (1, 0, 0), sender: int = 0) -> DagMessage:
    return DagMessage(view=1, key=message_of((sender, number)), vector=vector)


def agreed(sender: int, vector: tuple[int, ...]) -> DagMessage:
    envelope = Envelope(header=Header(id=ID, destinations=[Destination(group="a")]))
    key = message_of((sender, vector[sender]))
    return DagMessage(view=1, key=key, vector=vector, agreed=True, id=ID, groups=["a"], envelope=envelope)


# --------------------------------------------------------------------------------------------------- settings


def test_phi_is_within_what_is_possible():
    parsed = [settings.from_map({"phi": text}) for text in ("half", "all", "0", "3", "99")]
    assert [one.phi_of(5) for one in parsed] == [2, 4, 2, 3, 4]
    assert settings.from_map({}).phi_of(1) == 0


@pytest.mark.parametrize("wrong", [{"phi": "most"}, {"phi": "-1"}, {"idle_delay_s": "2"}, {"leave": "marks"}])
def test_what_cannot_be_set_is_refused(wrong):
    with pytest.raises(InvalidSettings, match=next(iter(wrong))):
        TOTO.parse(wrong, 0)


def test_every_setting_is_documented_with_its_default():
    assert {setting.name: setting.default for setting in TOTO.settings} == {"phi": "half", "idle_delay_s": "0.002"}


# ------------------------------------------------------------------------------------------ what others may say


def test_what_is_as_it_should_be_is_taken():
    checking.check_message(vote(), MEMBERS, "n1")
    checking.check_message(agreed(1, (0, 1, 0)), MEMBERS, "n2")
    checking.check_begin(DagBegin(view=2, index=3, groups=["a", "b"], positions=[1, 2]))


WRONG = [
    (vote(), "n2"),
    (vote(number=2), "n1"),
    (vote(vector=(1, 0)), "n1"),
    (vote(sender=7), "n1"),
    (DagMessage(view=1, key=message_of((0, 0)), vector=(0, 0, 0)), "n1"),
    (DagMessage(view=1, key=message_of((0, 1)), vector=(1, 0, 0), id=ID), "n1"),
    (DagMessage(view=1, key=message_of((0, 1)), vector=(1, 0, 0), agreed=True, id=ID), "n1"),
    (DagMessage(view=1, key=message_of((0, 1)), vector=(1, 0, 0), agreed=True, id=b"x", groups=["a"]), "n1"),
    (
        DagMessage(
            view=1, key=message_of((0, 1)), vector=(1, 0, 0), agreed=True, id=ID, groups=["a"], envelope=Envelope()
        ),
        "n1",
    ),
]


@pytest.mark.parametrize(("message", "source"), WRONG)
def test_what_cannot_be_is_refused(message, source):
    with pytest.raises(RemoteProtocolError):
        checking.check_message(message, MEMBERS, source)


@pytest.mark.parametrize(
    "flush",
    [
        DagFlush(ends=1, received=[1, 1], settled=[0, 0, 0]),
        DagFlush(ends=2, received=[1, 1, 1], settled=[0, 0, 0]),
        DagFlush(ends=1, received=[1, 1, 1], settled=[2, 0, 0]),
        DagFlush(ends=1, received=[1, 1, 1], settled=[0, 0, 0], bodies=[message_of((3, 1))]),
    ],
)
def test_no_contribution_is_refused(flush):
    with pytest.raises(RemoteProtocolError):
        checking.check_flush(flush, 1, 3)


@pytest.mark.parametrize(
    "begin", [DagBegin(groups=["a"]), DagBegin(groups=["b", "a"], positions=[0, 0]), DagBegin(index=1 << 63)]
)
def test_no_beginning_is_refused(begin):
    with pytest.raises(RemoteProtocolError):
        checking.check_begin(begin)


# ------------------------------------------------------------------------------------------------------- views


def test_a_domain_may_have_a_view_of_its_own():
    assert View(DomainView()).processes is None
    view = DomainView(processes=ProcessView(number=3, names=["n1"], previous=2, previous_names=["n1", "n2"]))
    processes = View(view).processes
    assert processes is not None
    assert (processes.completed, processes.completed_names) == (2, ("n1", "n2"))
    view.processes.previous = 0
    processes = View(view).processes
    assert processes is not None
    assert (processes.completed, processes.completed_names) == (3, ("n1",))


def test_what_came_without_its_past_is_forgotten_before_a_contribution():
    era = Era(begin_of(1, 0, {}), MEMBERS, 0, 1)
    era.take(vote(vector=(0, 1, 1), sender=1))
    era.enter()
    assert era.forget_orphans() == [(1, 1)]
    assert (era.received, era.casts) == ([0, 0, 0], {})


def test_a_message_is_dropped_when_everybody_follows_it_and_votes_are_behind_it():
    """What everybody has said is kept as little as the messages that were ordered by it."""
    stage = Stage({"a": MEMBERS}, nodes=MEMBERS, settings=settings.Settings(settle_batch=1))
    for _ in range(30):
        stage.publish("c1", "a")
        stage.run(0.03)
    for name in MEMBERS:
        era = stage.machine(name).era
        assert era is not None
        assert len(era.casts) < 15
        assert era.index == 30
    stage.finish()


def test_a_process_without_groups_gets_headers_alone():
    stage = Stage({"a": ("n1", "n2")}, nodes=MEMBERS)
    stage.publish("c3", "a")
    stage.run(0.05)
    era, other = stage.machine("n2").era, stage.machine("n3").era
    assert era is not None
    assert other is not None
    assert era.casts[(2, 1)].HasField("envelope")
    stage.publish("c1", "a")
    stage.run(0.05)
    (key,) = [key for key, message in other.casts.items() if message.agreed and key[0] == 0]
    assert not other.casts[key].HasField("envelope")
    stage.finish()


# ------------------------------------------------------------------------------------------------------ the page

FOLDER = Path(__file__).parents[2] / "services/ordercast/protocols/toto"


def test_what_the_page_names_is_there():
    page = (FOLDER / "README.md").read_text()
    names = re.findall(r"`([A-Z]\w+)\.(\w+)`", page)
    modules = [import_module(f"ordercast.protocols.toto.{path.stem}") for path in FOLDER.glob("[a-z]*.py")]
    assert len(names) > 30
    for owner, name in names:
        classes = [getattr(module, owner) for module in modules if hasattr(module, owner)]
        assert classes, owner
        assert hasattr(classes[0], name) or name in classes[0].__annotations__ or _is_set(classes[0], name), name


def _is_set(owner: type, name: str) -> bool:
    return any(f"self.{name}" in (FOLDER / f"{module}.py").read_text() for module in ("ballot", "order", "era"))
