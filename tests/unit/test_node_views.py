"""What a process tells membership about views, and when; and how it leaves them before it stops."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

from ordercast.runtime.process import registration
from ordercast.runtime.process.node import Node
from ordercast.runtime.process.registration import Registration
from ordercast.v1.membership_pb2 import Group, GroupProgress
from ordercast.v1.membership_pb2 import Node as NodeRecord

PROGRESS = GroupProgress(group="g#1", configuration=2)


class Fake(Registration):
    """Of a node n1, of which it is as much as heartbeats need."""

    wait_for_change = Node.wait_for_change

    def __init__(self, *groups: Group, up: str = "n1 n2 n3", heartbeat_s: float = 5.0) -> None:
        super().__init__(self)  # type: ignore[arg-type]
        self.name = "n1"
        self.settings = SimpleNamespace(heartbeat_s=heartbeat_s)
        nodes = {name: NodeRecord(name=name, suspected=name not in up.split()) for name in ("n1", "n2", "n3")}
        self.directory = SimpleNamespace(cells={group.id: group for group in groups}, nodes=nodes)
        self.progress: list[GroupProgress] = []
        self._changed = asyncio.Event()

    def _progress(self) -> list[GroupProgress]:
        return self.progress

    def change(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def group(**fields: Any) -> Group:
    replicas = ["n1", "n2", "n3"]
    values = {
        "id": "g#1",
        "configuration": 2,
        "replicas": replicas,
        "placement": replicas,
        "incarnations": [1, 2, 3],
    }
    return Group(**(values | fields))


def seconds_of(fake: Fake, reported: list[GroupProgress], *acts: Any) -> float:
    """How long it waits, while this is done a moment later."""

    async def run() -> float:
        waiting = asyncio.ensure_future(fake._until_due(reported))
        begun = time.monotonic()
        await asyncio.sleep(0.05)
        for act in acts:
            act()
        await waiting
        return time.monotonic() - begun

    return asyncio.run(run())


def test_membership_hears_at_once_that_this_process_is_further(monkeypatch):
    monkeypatch.setattr(registration, "CHANGING_S", 5.0)
    fake = Fake(group(starting=["n1"]))
    fake.progress = [PROGRESS]
    further = GroupProgress(group="g#1", configuration=2, started=True)
    assert seconds_of(fake, [PROGRESS], lambda: fake.progress.__setitem__(0, further)) < 2


def test_a_view_that_is_defined_while_nothing_was_under_way_is_noticed_at_once(monkeypatch):
    monkeypatch.setattr(registration, "CHANGING_S", 5.0)
    fake = Fake(group())

    def defined() -> None:
        fake.directory.cells["g#1"].starting.append("n1")
        fake.progress = [PROGRESS]
        fake.change()

    assert seconds_of(fake, [], defined) < 2


def test_how_far_a_copy_is_is_no_reason_to_hurry():
    fake = Fake(group(starting=["n1"]), heartbeat_s=0.3)
    fake.progress = [PROGRESS]
    copied = GroupProgress(group="g#1", configuration=2, position=7, head=9)
    assert seconds_of(fake, [PROGRESS], lambda: fake.progress.__setitem__(0, copied)) >= 0.1


def test_without_a_change_it_is_said_as_often_as_ever():
    assert seconds_of(Fake(heartbeat_s=0.2), [], lambda: None) >= 0.2


def test_a_process_that_stops_waits_until_no_view_needs_it():
    async def run(fake: Fake, *left: Any) -> float:
        leaving = asyncio.ensure_future(fake.leave_views())
        begun = time.monotonic()
        for act in left:
            await asyncio.sleep(0.05)
            assert not leaving.done()
            act()
            fake.change()
        await leaving
        return time.monotonic() - begun

    fake = Fake(group())
    found = fake.directory.cells["g#1"]

    def defined() -> None:
        found.previous.number, found.previous.replicas[:] = 2, found.replicas
        found.configuration, found.replicas[:], found.leaving[:] = 3, ["n2", "n3"], ["n1"]

    def completed() -> None:
        found.ClearField("previous")
        found.ClearField("leaving")

    assert asyncio.run(run(fake, defined, completed)) < 2


def test_a_process_that_stops_does_not_wait_for_a_view_that_cannot_follow(monkeypatch):
    assert Fake(group())._is_expected()
    assert not Fake(group(), up="n1")._is_expected()
    assert not Fake()._is_expected()
    assert not Fake(group(replicas=["n2", "n3"], incarnations=[2, 3]))._is_expected()
    assert not Fake(Group(id="s#1", replicas=["n1", "n2"], acceptors=["n1", "n2"]))._is_expected(), "no views"
    monkeypatch.setattr(registration, "LEAVE_S_MAX", 0.1)
    asyncio.run(Fake(group()).leave_views())
