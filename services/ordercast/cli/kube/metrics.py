"""What processes say on their pages of metrics: who leads membership, and what waits for its order."""

import http.client
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ordercast.cli.kube.api import ApiPlace, KubeError, Object, one_line
from ordercast.cli.kube.forward import HOST, pod_socket
from ordercast.cli.kube.release import arguments_of, name_of, port_of
from ordercast.telemetry.schema import names
from ordercast.telemetry.schema.model import load

AT_ONCE_MAX = 8
PAGE_S_MAX = 5.0


@dataclass(frozen=True, slots=True)
class WaitingEnvelopes:
    """Envelopes that a process has, and has not delivered."""

    node: str
    domain: str
    envelopes: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class Page:
    text: str = ""
    #: Why there is none.
    error: str = ""


@dataclass(slots=True)
class Said:
    """What all metrics pages say together."""

    leaders: list[str] = field(default_factory=list)
    #: Whether every member of membership was asked and knows the answer.
    is_complete: bool = True
    waiting: list[WaitingEnvelopes] = field(default_factory=list)
    #: Why a page could not be read, by pod.
    unread: dict[str, str] = field(default_factory=dict)


# ------------------------------------------------------------------------------------------------------ reading


def read_pages(place: ApiPlace, pods: list[Object], timeout_s: float) -> Said:
    """Read the metrics pages of pods that run processes of the cluster: some at once, and all within the time."""
    asked = [pod for pod in pods if arguments_of(pod)[:1] == ["serve"] and port_of(pod, "metrics") is not None]
    until = time.monotonic() + timeout_s

    def read(pod: Object) -> Page:
        left_s = min(until - time.monotonic(), PAGE_S_MAX)
        if left_s <= 0:
            return Page(error="there was no time left")
        try:
            return Page(_page(place, pod, left_s))
        except (KubeError, OSError, http.client.HTTPException) as error:
            return Page(error=one_line(error))

    with ThreadPoolExecutor(AT_ONCE_MAX) as threads:
        pages = dict(zip(map(name_of, asked), threads.map(read, asked), strict=True))
    return said_by(pages, [name_of(pod) for pod in asked if "membership" in arguments_of(pod)])


def _page(place: ApiPlace, pod: Object, timeout_s: float) -> str:
    """Through the same door as to gateways: no NetworkPolicy closes it, and no other permission is needed."""
    port = port_of(pod, "metrics") or 0
    with pod_socket(place, name_of(pod), port, timeout_s) as connection:
        connection.settimeout(timeout_s)
        asking = http.client.HTTPConnection(HOST, port)
        asking.sock = connection
        asking.request("GET", "/metrics", headers={"Connection": "close"})
        answer = asking.getresponse()
        text = answer.read().decode(errors="replace")
        if answer.status != 200:
            raise OSError(f"the page was answered with {answer.status}")
        return text


# ------------------------------------------------------------------------------------------------ understanding


def said_by(pages: Mapping[str, Page], members: list[str]) -> Said:
    """`members` are those that run membership."""
    found = Said()
    leading = _prometheus(names.METRIC_MEMBERSHIP_LEADING)
    for pod, page in pages.items():
        if page.error:
            found.unread[pod] = page.error
        samples = _samples(page.text)
        if pod in members:
            values = [value for name, _, value in samples if name == leading]
            # Earlier versions do not say it.
            found.is_complete = found.is_complete and bool(values)
            found.leaders += [pod] if any(values) else []
        found.waiting += _waiting(pod, samples)
    return found


def _waiting(pod: str, samples: list[Any]) -> list[WaitingEnvelopes]:
    """The envelopes that wait at a pod, for each domain that has some."""
    label = load().attributes[names.ATTRIBUTE_DOMAIN].prometheus
    counts, ages = (
        {labels.get(label, ""): value for name, labels, value in samples if name == _prometheus(metric)}
        for metric in (names.METRIC_ORDER_WAITING, names.METRIC_ORDER_WAITING_AGE)
    )
    return [
        WaitingEnvelopes(pod, domain, int(count), ages.get(domain, 0.0))
        for domain, count in sorted(counts.items())
        if count
    ]


def _samples(text: str) -> list[tuple[str, dict[str, str], float]]:
    """What is no page of metrics has none."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        families = list(text_string_to_metric_families(text))
    except ValueError:
        return []
    return [(one.name, one.labels, one.value) for family in families for one in family.samples]


def _prometheus(metric: str) -> str:
    return load().metrics[metric].prometheus


# ------------------------------------------------------------------------------------------------------ judging


def judge_leader(said: Said) -> tuple[str | None, list[str], list[str]]:
    """Who leads membership, if that is known; troubles; notes."""
    if len(said.leaders) > 1:
        # One that is cut off believes in itself for a while.
        return None, [], [f"more than one believes to lead membership: {', '.join(said.leaders)}"]
    if said.leaders:
        return said.leaders[0], [], []
    if said.is_complete:
        return None, ["nobody leads membership"], []
    return None, [], ["who leads membership is not known: not all of its members say whether they do"]


def waiting_row(waiting: WaitingEnvelopes) -> dict[str, str]:
    return {
        "node": waiting.node,
        "domain": waiting.domain,
        "waiting": str(waiting.envelopes),
        "oldest": f"{waiting.oldest_s:.1f} s",
    }


def waiting_document(waiting: WaitingEnvelopes) -> dict[str, Any]:
    return {
        "node": waiting.node,
        "domain": waiting.domain,
        "envelopes": waiting.envelopes,
        "oldest_s": round(waiting.oldest_s, 3),
    }
