"""[BSS91] What multicasts, view changes and timestamps cost, beside what the paper says they do.

The real machines run on a network where every message takes equally long, disks that sync at once, and without
failures; every run is judged by the usual checkers before its figures count. A multicast counts once, however many
receive it, where the paper counts CBCASTs; where it counts messages, each receiver counts, and nobody sends to
itself. What goes to and from clients is ours and not the paper's: it is not counted. The simulated membership
sends no messages: each process that it has news for counts as one, and each that has something to report to it.

Times per message (Tables II and III) are a matter of a cluster: of those only the paper's own are here, and what
somebody has measured is put beside them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from ordercast.core.machine import TimerFired
from ordercast.core.view import FIRST
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.isis.era import key_of
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.protocol import NAME
from ordercast.protocols.isis.settings import FlushKind, Ordering, Settings
from ordercast.sim.isis.caster import TIMER, Caster, CasterSettings, CastPlan
from ordercast.sim.isis.cluster import IsisCluster
from ordercast.sim.isis.scenario import IsisScenario
from ordercast.sim.network import NetworkSettings
from ordercast.sim.paper import Figure, Paper, Say, Table, rows_from
from ordercast.v1.isis_pb2 import Cast
from ordercast.v1.membership_pb2 import DomainView, GroupView

DELAY_S = 0.001
#: Longer than any run.
NEVER_S = 1e6


@dataclass(slots=True)
class Section:
    """One table: what it shows, and rows with the same columns. See `rows_from` for what the columns are."""

    title: str
    rows: list[dict[str, Figure]]
    keys: tuple[str, ...]
    beside: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------------ the setting


@dataclass(slots=True)
class Count:
    """What was sent since it began, by kind: multicasts, and messages, one for each receiver but the sender."""

    multicasts: dict[str, int] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)
    #: Of each cast: bytes of its timestamp as sent, of the same in full, and of what it says about stability.
    stamps: list[int] = field(default_factory=list)
    stamps_in_full: list[int] = field(default_factory=list)
    stability: list[int] = field(default_factory=list)
    #: News from membership to members and newcomers, by kind of news; and their word that the cut is on disk.
    told: dict[str, int] = field(default_factory=dict)
    acknowledgements: int = 0

    def of(self, *kinds: str) -> int:
        return sum(self.messages.get(kind, 0) for kind in kinds)


def stamp_bytes(cast: Cast) -> int:
    return Cast(times=cast.times, carried=cast.carried).ByteSize()


class Experiment:
    """Groups without faults, and a client for each sender, which publishes through that one alone.

    So what a client has seen is what its sender has seen, and the stamps are the sender's own.
    """

    def __init__(
        self,
        groups: Mapping[str, Sequence[str]],
        settings: Settings,
        *,
        senders: Iterable[str] = (),
        spare: Sequence[str] = (),
    ) -> None:
        view = DomainView(domain="sim", number=1)
        for name, members in sorted(groups.items()):
            view.groups.append(GroupView(group=name, configuration=FIRST, replicas=sorted(members)))
        nodes = sorted({member for members in groups.values() for member in members} | {*spare})
        casters = {f"c {name}": CasterSettings([], pipeline=10_000, patience_s=NEVER_S) for name in senders}
        network = NetworkSettings(delay_s=DELAY_S, exact=True)
        scenario = IsisScenario(
            nodes, [], view, {}, network, settings, GatewaySettings(), 0.0, disk_delay_s=0.0, casters=casters
        )
        self.cluster = IsisCluster(scenario, "paper")
        self.world, self.membership = self.cluster.world, self.cluster.membership
        self.world.on_send = self._on_send
        self.count = Count()
        self.cluster.start()
        self.run(0.05)
        self.begin()

    def begin(self) -> None:
        """Count from here on."""
        self.count = Count()

    def _on_send(self, source: str, to: Sequence[str], message: Any, size: int) -> None:
        self.cluster.on_send(source, to, message, size)
        kind = type(message).__name__
        count, others = self.count, sum(1 for name in to if name != source)
        count.multicasts[kind] = count.multicasts.get(kind, 0) + 1
        count.messages[kind] = count.messages.get(kind, 0) + others
        if isinstance(message, Cast):
            assert not message.whole, "a cast that was sent again"
            # The caster keeps it as receivers will: with all that its casts before have said.
            era = self.machine(source).replicas[message.group].eras[-1]
            count.stamps.append(stamp_bytes(message))
            count.stamps_in_full.append(stamp_bytes(era.casts[key_of(message.key)]))
            count.stability.append(Cast(row=message.row).ByteSize())

    def machine(self, node: str) -> Isis:
        machine = self.world.processes[node].slots["isis"].machine
        assert isinstance(machine, Isis)
        return machine

    def run(self, seconds: float) -> None:
        self.world.run_until(self.world.now + seconds)

    def rest(self) -> None:
        """Everything is delivered, acknowledged and everywhere, and no checker objects."""
        self.cluster.run_to_rest(self.world.now + self.cluster.rest_s_max)
        self.cluster.check_end()

    def holder(self, group: str) -> str:
        era = self.machine(self.membership.groups[group].replicas[0]).replicas[group].eras[-1]
        return era.members[era.token.holder]

    def publish(self, sender: str, group: str, *, total: bool = False, count: int = 1) -> None:
        process = self.world.processes[f"c {sender}"]
        client = process.slots["client"].machine
        assert isinstance(client, Caster)
        client.member[(group,)] = list(self.membership.groups[group].replicas).index(sender)
        client.plans.extend(CastPlan(0.0, (group,), total) for _ in range(count))
        process.tell("client", TimerFired(*process.clock(), TIMER, 0))

    # -------------------------------------------------------------------------------------- view changes

    def move(self, group: str, placement: Sequence[str]) -> None:
        """Members come and go of their own will: define, flush, complete, install."""
        membership = self.membership
        concerned = sorted({*membership.groups[group].replicas, *placement})
        membership.place(group, list(placement))
        self._tell("placed", concerned)
        self._copy(group)
        membership.look()
        self._tell("defined", concerned)
        self.run(0.05)
        progress = [self.machine(name).progress().get(group) for name in concerned]
        self.count.acknowledgements = sum(1 for one in progress if one is not None and one.started)
        membership.look()
        self.run(0.05)
        self._tell("completed", concerned)
        self.run(0.05)
        membership.look()
        self._tell("installed", concerned)
        self.rest()

    def _tell(self, kind: str, concerned: Sequence[str]) -> None:
        """Membership's latest word to everyone; to those that the group concerns, it is counted."""
        latest = len(self.membership.history) - 1
        late = [name for name in concerned if self.world.processes[name].followed < latest]
        self.count.told[kind] = self.count.told.get(kind, 0) + len(late)
        self.membership.tell_all()

    def _copy(self, group: str) -> None:
        """Newcomers copy the log first: the membership service waits for that, and so does this."""
        latest = self.world.now + self.cluster.rest_s_max
        for name in self.membership.groups[group].learners:
            while self.world.now < latest and not self.machine(name).progress()[group].caught_up:
                self.run(DELAY_S)


def names(n: int) -> list[str]:
    return [f"n{i:02}" for i in range(1, n + 1)]


# -------------------------------------------------------------------------------------------- [5.2] ABCAST

MEMBERS = 4
#: As many sets-orders in each run.
BATCHES = 12


def resting_token(k: int, *, by_holder: bool = False, total: bool = True) -> Count:
    """Casts that originate anywhere but at the token holder, or only there; one sets-order for k of them."""
    members = names(MEMBERS)
    settings = Settings(
        ordering=Ordering.TOTAL if total else Ordering.CAUSAL,
        order_batch=k,
        order_wait_s=NEVER_S,
        token_window=1 << 16,
    )
    experiment = Experiment({"a": members}, settings, senders=members)
    holder = experiment.holder("a")
    senders = [name for name in members if (name == holder) == by_holder]
    random = Random(k)
    for _ in range(BATCHES * k):
        experiment.publish(random.choice(senders), "a", total=total)
    experiment.rest()
    assert experiment.holder("a") == holder
    return experiment.count


def moved_token() -> Count:
    """One process casts again and again, so the token comes to it. Counted is what it casts then."""
    members = names(MEMBERS)
    settings = Settings(ordering=Ordering.TOTAL)
    experiment = Experiment({"a": members}, settings, senders=members)
    sender = next(name for name in members if name != experiment.holder("a"))
    experiment.publish(sender, "a", total=True, count=settings.token_window)
    experiment.rest()
    assert experiment.holder("a") == sender
    experiment.begin()
    experiment.publish(sender, "a", total=True, count=settings.token_window)
    experiment.rest()
    return experiment.count


def _abcast_row(what: str, k: int, published: float, count: Count) -> dict[str, Figure]:
    casts, orders = count.multicasts["Cast"], count.multicasts.get("SetsOrder", 0)
    return {
        "what": what,
        "k": k,
        "casts": casts,
        "sets_orders": orders,
        "published": round(published, 4),
        "measured": round((casts + orders) / casts, 4),
    }


def abcast(ks: Iterable[int] = range(1, 17)) -> Section:
    found = [_abcast_row("ABCAST, token elsewhere", k, 1 + 1 / k, resting_token(k)) for k in ks]
    found.append(_abcast_row("ABCAST, token at sender", 1, 1.0, resting_token(1, by_holder=True)))
    found.append(_abcast_row("ABCAST, token moved there", 1, 1.0, moved_token()))
    # Ours has common offsets in a causal domain too, so casts are listed there; no delivery waits for that.
    for k in (1, 16):
        found.append(_abcast_row("CBCAST, listed for log", k, 1.0, resting_token(k, total=False)))
    title = "Multicasts per cast; one sets-order for k of them [5.2]"
    return Section(title, found, ("what", "k"), {"measured": "published"})


# -------------------------------------------------------------------------------------- [5.5, 7.4] views


def leaving(n: int, flush: FlushKind) -> Count:
    """One of n members leaves of its own will. It takes part in the flush."""
    experiment = Experiment({"a": names(n)}, Settings(flush=flush))
    experiment.move("a", names(n)[:-1])
    return experiment.count


def joining(n: int, flush: FlushKind, *, logged: int = 0) -> Count:
    """One more comes to n members, whose log holds so many messages, all of them stable."""
    members, newcomer = names(n), names(n + 1)[-1]
    experiment = Experiment({"a": members}, Settings(flush=flush), senders=members[:1], spare=[newcomer])
    if logged:
        experiment.publish(members[0], "a", count=logged)
    experiment.rest()
    experiment.begin()
    experiment.move("a", [*members, newcomer])
    return experiment.count


def flush(kind: FlushKind, ns: Iterable[int] = range(3, 25)) -> Section:
    """n take part: the members of the new view, and whoever leaves."""
    found: list[dict[str, Figure]] = []
    for n in ns:
        leaves, joins = leaving(n, kind), joining(n - 1, kind)
        is_square = kind == FlushKind.ALL
        found.append(
            {
                "n": n,
                "published": n * n if is_square else 2 * n,
                "none_to_itself": n * (n - 1) if is_square else 2 * (n - 1),
                "one_leaves": leaves.of("Flush", "Cut"),
                "one_joins": joins.of("Flush", "Cut"),
                "acks_leaving": leaves.acknowledgements,
                "acks_joining": joins.acknowledgements,
            }
        )
    how = "n^2: everyone tells everyone" if kind == FlushKind.ALL else "2n: with a coordinator"
    title = f"Messages of a flush, {how}; nobody sends to itself; acks say that the cut is on disk [5.5]"
    beside = {"one_leaves": "published", "one_joins": "published"}
    return Section(title, found, ("n",), beside, left_out=("none_to_itself",))


def additions(ns: Iterable[int] = (3, 6, 12, 24)) -> dict[int, Count]:
    """By n; with a log of one message, so that there is something to copy."""
    return {n: joining(n, FlushKind.COORDINATOR, logged=1) for n in ns}


def all_of(count: Count) -> int:
    """Everything that was sent, said by membership, or reported to it."""
    return sum(count.messages.values()) + sum(count.told.values()) + count.acknowledgements


def addition(counts: Mapping[int, Count]) -> Section:
    """The sum is of what the paper's 3n are: the view's definition, the flush, and the coordinator's answer."""
    found: list[dict[str, Figure]] = [
        {
            "n": n,
            "published_about": 3 * n,
            "defined": count.told["defined"],
            "flush": count.of("Flush"),
            "cut": count.of("Cut"),
            "sum": count.told["defined"] + count.of("Flush", "Cut"),
            "all": all_of(count),
        }
        for n, count in counts.items()
    ]
    title = "Messages to add a member to a group of n [7.4]"
    return Section(title, found, ("n",), {"sum": "published_about"})


def completion(counts: Mapping[int, Count]) -> Section:
    """The rest, which the paper does not count or does not have: a durable view, a newcomer with the whole log."""
    found: list[dict[str, Figure]] = [
        {
            "n": n,
            "acks": count.acknowledgements,
            "other_news": sum(count.told.values()) - count.told["defined"],
            "log_copied": count.of("FetchLog", "LogChunk"),
            "resumed": count.of("Resume"),
            "stability": count.of("Stability"),
        }
        for n, count in counts.items()
    ]
    title = "What else is sent to add a member, for a durable view and a log of one message"
    return Section(title, found, ("n",))


# ------------------------------------------------------------------------------- [5.4, 6.3] timestamps

WIDE = 64


def one_group(senders: int, burst: int, *, at_random: bool = False) -> Count:
    """Casts in a group of 64, in bursts of one sender; each burst has reached everyone before the next begins."""
    members = names(WIDE)
    speakers = members[:: WIDE // senders]
    # Stability is told late, for it is not what is measured, and 64 members tell 63 others of it.
    experiment = Experiment({"a": members}, Settings(stability_idle_s=0.5), senders=speakers)
    random = Random(senders)
    for index in range(max(64 // burst, 2 * senders)):
        sender = random.choice(speakers) if at_random else speakers[index % senders]
        experiment.publish(sender, "a", count=burst)
        experiment.run(4 * DELAY_S)
    experiment.rest()
    return experiment.count


def many_groups(burst: int, *, bursts: int = 48) -> Count:
    """A ring of eight groups of four. A member casts a burst in one of its groups, then another one elsewhere."""
    members = names(8)
    groups = {f"g{i}": [members[(i + j) % 8] for j in range(4)] for i in range(8)}
    experiment = Experiment(groups, Settings(), senders=members)
    random = Random(8)
    for _ in range(bursts):
        group = random.choice(sorted(groups))
        experiment.publish(random.choice(groups[group]), group, count=burst)
        experiment.run(0.05)
    experiment.rest()
    return experiment.count


def mean(sizes: Sequence[int]) -> float:
    return round(sum(sizes) / len(sizes), 2)


def stamped_share(count: Count) -> float:
    return round(sum(1 for size in count.stamps if size) / len(count.stamps), 4)


def timestamps() -> Section:
    settings = {
        "4 senders in turn": one_group(4, 1),
        "4 senders at random": one_group(4, 1, at_random=True),
        "4 senders, bursts of 16": one_group(4, 16),
        "64 senders in turn": one_group(64, 1),
    }
    found: list[dict[str, Figure]] = [
        {
            "what": what,
            "casts": len(count.stamps),
            "published": 4 * WIDE + 40,
            "in_full": mean(count.stamps_in_full),
            "as_sent": mean(count.stamps),
            "stability": mean(count.stability),
        }
        for what, count in settings.items()
    ]
    title = "Bytes of a timestamp in a group of 64, and of stability beside it [5.4, 8 note 14]"
    return Section(title, found, ("what",), {"as_sent": "published"})


def locality(bursts: Iterable[int] = (1, 4, 16)) -> Section:
    """Who casts without having received anything need not say anything: only a burst's first cast has a stamp."""
    found: list[dict[str, Figure]] = []
    for burst in bursts:
        count = many_groups(burst)
        found.append(
            {
                "burst": burst,
                "casts": len(count.stamps),
                "published_at_most": round(1 / burst, 4),
                "share_with_stamp": stamped_share(count),
                "bytes_in_full": mean(count.stamps_in_full),
                "bytes_as_sent": mean(count.stamps),
            }
        )
    title = "Timestamps of casts in a ring of 8 groups, 4 members each, sent in bursts [6.3]"
    return Section(title, found, ("burst",), {"share_with_stamp": "published_at_most"})


# ----------------------------------------------------------------------------- [8] Tables II and III

#: Milliseconds until all destinations have replied, for null, 1 KB and 7 KB messages; messages per second without
#: replies, null; kilobytes per second without replies, 7 KB.
COLUMNS = ("null_ms", "1k_ms", "7k_ms", "null_per_s", "7k_kb_per_s")
#: By destinations; 0 is the sender itself. SUN 4/60 workstations and an Ethernet of 10 Mbit/s.
CBCAST = {
    0: (1.51, 1.52, 1.51, 4240, 16706),
    1: (6.51, 7.86, 17.0, 1019, 550),
    2: (8.67, 10.1, 23.4, 572, 361),
    3: (10.7, 12.2, 34.9, 567, 249),
    4: (12.9, 15.2, 43.4, 447, 180),
    5: (16.3, 18.8, 54.1, 352, 143),
    6: (19.6, 21.9, 64.6, 305, 118),
    7: (22.9, 25.7, 75.7, 253, 101),
}
#: The sender does not hold the token. The 352 is as printed; it stands between 197 and 133, and in Table II too.
ABCAST = {
    0: (1.52, 1.56, 1.55, 3300, 20000),
    1: (12.7, 14.0, 25.5, 341, 560),
    2: (18.5, 19.7, 30.7, 273, 317),
    3: (24.6, 25.6, 42.6, 207, 175),
    4: (31.4, 32.5, 53.5, 197, 152),
    5: (38.1, 39.2, 70.3, 352, 115),
    6: (44.3, 42.1, 77.5, 133, 98.9),
    7: (55.2, 48.3, 97.0, 97, 79.7),
}

#: By destinations and column, what a cluster of ours did.
Curve = Mapping[int, Mapping[str, float]]


def shortened(figure: float | None) -> float | None:
    """As few digits as the paper has."""
    return figure if figure is None else round(figure) if figure >= 100 else float(f"{figure:.3g}")


def published_times(title: str, table: Mapping[int, Sequence[float]], ours: Curve | None = None) -> Section:
    """The paper's figures, and beside them those of ours that there are."""
    found: list[dict[str, Figure]] = []
    for destinations, figures in table.items():
        row: dict[str, Figure] = {"destinations": destinations or "self"}
        for column, figure in zip(COLUMNS, figures, strict=True):
            row[column] = figure
            if ours is not None:
                row[f"ours_{column}"] = shortened(ours.get(destinations, {}).get(column))
        found.append(row)
    return Section(title, found, ("destinations",), {f"ours_{column}": column for column in COLUMNS})


# ------------------------------------------------------------------------------------------------- all of it


def tables(cbcast_ours: Curve | None = None, abcast_ours: Curve | None = None) -> dict[str, Section]:
    """Those that take a cluster."""
    ours = ", and ours on this machine" if cbcast_ours is not None else ""
    return {
        "table_2": published_times(f"CBCAST, as published{ours} [8, Table II]", CBCAST, cbcast_ours),
        "table_3": published_times(f"ABCAST, as published{ours} [8, Table III]", ABCAST, abcast_ours),
    }


def published_curve(table: Mapping[int, Sequence[float]]) -> dict[int, dict[str, float]]:
    """As a Curve, with messages of 7 KB per second too."""
    curve = {n: dict(zip(COLUMNS, figures, strict=True)) for n, figures in table.items()}
    return {n: {**figures, "7k_per_s": figures["7k_kb_per_s"] / 7} for n, figures in curve.items()}


def sections(cbcast_ours: Curve | None = None, abcast_ours: Curve | None = None) -> dict[str, Section]:
    """By name; each is a table."""
    added = additions()
    return {
        "abcast": abcast(),
        "flush_all": flush(FlushKind.ALL),
        "flush_coordinator": flush(FlushKind.COORDINATOR),
        "addition": addition(added),
        "completion": completion(added),
        "timestamps": timestamps(),
        "locality": locality(),
        **tables(cbcast_ours, abcast_ours),
    }


def tables_of(found: Mapping[str, Section]) -> list[Table]:
    return [
        Table(
            f"ISIS: {section.title}",
            rows_from(
                name.replace("_", " "),
                section.rows,
                keys=section.keys,
                beside=section.beside,
                left_out=section.left_out,
            ),
        )
        for name, section in found.items()
    ]


def measured(seconds: float, save: Path | None, say: Say) -> list[Table]:
    """Tables II and III, on a cluster of ours."""
    from ordercast.bench import curves
    from ordercast.bench.saving import save_curves

    found = curves.run(NAME, seconds, say)
    if save is not None:
        published = {curves.CBCAST: published_curve(CBCAST), curves.ABCAST: published_curve(ABCAST)}
        save_curves(found, published, save)
    return tables_of(tables(found.cbcast, found.abcast))


PAPER = Paper(tables=lambda: tables_of(sections()), measured=measured)
