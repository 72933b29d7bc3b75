"""What the paper says of delays, beside our machines: every link takes one delay, and disks take no time.

δ is counted from when the gateway sends a message. The paper's setting: the source is one of the groups, clocks
are synchronous, and w(p) is one delay. A2, its assumption, is that whatever was stamped before has come by
then.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ordercast.core.machine import Deliver
from ordercast.protocols.optimistic.settings import PERIODIC, Settings
from ordercast.sim.network import NetworkSettings
from ordercast.sim.optimistic.stage import Stage
from ordercast.sim.paper import Paper, PaperRow, Table

DELAY_S = 0.001
GROUPS = {"a": ("n1", "n2", "n3"), "b": ("n4", "n5", "n6"), "c": ("n7", "n8", "n9")}
#: The window is what a message takes, and nothing happens only because time passes.
EXACT = Settings(window_us=round(DELAY_S * 1e6), silence_s=1e3)


@dataclass(slots=True)
class Times:
    """Of each envelope: when it was sent, and when the last replica saw it early, and had it for good."""

    stage: Stage
    sent: dict[bytes, float] = field(default_factory=dict)
    early: dict[bytes, float] = field(default_factory=dict)
    final: dict[bytes, float] = field(default_factory=dict)
    messages: int = 0

    def __post_init__(self) -> None:
        world = self.stage.world
        on_send, on_deliver = world.on_send, world.on_deliver

        def sends(source: str, to: object, message: object, size: int) -> None:
            on_send(source, to, message, size)  # type: ignore[arg-type]
            if type(message).__name__ == "Multicast":
                self.sent.setdefault(message.envelope.header.id, world.now)  # type: ignore[attr-defined]

        def delivers(process: str, effect: Deliver) -> None:
            on_deliver(process, effect)
            times = self.final if effect.final else self.early
            times[effect.entry.envelope.header.id] = world.now

        world.on_send, world.on_deliver = sends, delivers

    def delays(self, times: dict[bytes, float]) -> list[float]:
        return [round((at - self.sent[id_]) / DELAY_S, 2) for id_, at in times.items()]


def _play(settings: Settings, story: Callable[[Stage], None], **told: object) -> Times:
    stage = Stage(GROUPS, settings=settings, **told)  # type: ignore[arg-type]
    times = Times(stage)
    story(stage)
    stage.run(2.0)
    stage.finish()
    return times


def _some(stage: Stage) -> None:
    """Apart from each other, so that each of them is alone."""
    for _ in range(10):
        stage.publish("c1", "a", "b")
        stage.run(0.05)


def _overtaken(stage: Stage) -> None:
    """Pairs of which the second one has the lower timestamp, since its gateway's clock is behind by two delays."""
    for _ in range(10):
        stage.publish("c2", "a", "b")
        stage.run(0.0005)
        stage.publish("c1", "a", "b")
        stage.run(0.05)


#: g1's clock is behind, and one source decides for both gateways.
BEHIND = {"walls": {"g1": -2 * DELAY_S}, "gateways": ("g1", "g3")}


def delays() -> list[PaperRow]:
    holds = _play(EXACT, _some)
    fails = _play(EXACT, _overtaken, **BEHIND)
    return [
        PaperRow("optimistic delivery, A2 holds: delays", 1, max(holds.delays(holds.early))),
        PaperRow("final delivery, A2 holds: delays", 3, max(holds.delays(holds.final))),
        PaperRow("final delivery, A2 fails: delays, at most", 6, max(fails.delays(fails.final))),
        PaperRow("final delivery, A2 fails: delays, mean", None, _mean(fails.delays(fails.final))),
    ]


def thresholds() -> list[PaperRow]:
    """[Algorithm 2] Nulls that are sent now and then."""
    rows = []
    for barrier_s in (0.001, 0.005, 0.01, 0.02, 0.05):
        settings = replace(EXACT, liveness=PERIODIC, barrier_s=barrier_s, tick_s=min(0.1, barrier_s))
        times = _play(settings, _some)
        what = f"final delivery, a null every {round(barrier_s / DELAY_S)} delays: delays, mean"
        rows.append(PaperRow(what, "grows with the threshold", _mean(times.delays(times.final))))
    return rows


def mistakes() -> list[PaperRow]:
    """On a network on which one message in ten takes up to ten times longer: what the window is good for."""
    rows = []
    for quantile in (0.5, 0.9, 0.99):
        settings = Settings(window_quantile=quantile)
        share = _share_of_mistakes(settings, {})
        rows.append(
            PaperRow(f"share of early deliveries in the wrong order, w at quantile {quantile}", None, share)
        )
    for apart_s in (0.0, 0.01, 0.1):
        share = _share_of_mistakes(Settings(), {"g1": apart_s})
        what = f"share of early deliveries in the wrong order, a clock {round(apart_s * 1000)} ms ahead"
        rows.append(PaperRow(what, None, share))
    return rows


def _share_of_mistakes(settings: Settings, walls: dict[str, float]) -> float:
    network = NetworkSettings(delay_s=DELAY_S, slow=0.1)
    stage = Stage(GROUPS, settings=settings, network=network, walls=walls)
    for _ in range(300):
        for client in ("c1", "c2"):
            stage.publish(client, "a", "b")
        stage.run(0.004)
    stage.run(2.0)
    stage.finish()
    early = stage.cluster.checkers.early
    assert early is not None
    return round(early.mistakes / max(1, early.confirmed), 3)


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 2)


PAPER = Paper(
    tables=lambda: [
        Table("Delays without failures", delays()),
        Table("Algorithm 2: nulls periodically", thresholds()),
        Table("Mistakes of the optimistic order", mistakes()),
    ]
)
