"""`ordercast up`: a cluster of real processes on this machine, started, watched and stopped together.

What needs gRPC is imported when the command runs: other commands start without it.
"""

import contextlib
import fcntl
import json as json_format
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group as Stack
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ordercast.cli.connection import check_address
from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import Json, err, out, print_json
from ordercast.runtime.storage.private_files import DIRECTORY_MODE, FILE_MODE, make_private

if TYPE_CHECKING:
    from ordercast.local.certificates import LocalCertificates
    from ordercast.local.cluster import LocalCluster, Member

TLS_FOLDER = "tls"
DIRECTORY_DEFAULT = Path("ordercast-data")
PORT_DEFAULT = 7400
PORT_MAX = 65_535
NODES_MAX = 15

SHAPE_FILE = "cluster.json"
SHAPE_FORMAT = 1
SHAPE_BYTES_MAX = 4096
LOCK_FILE = "cluster.lock"

#: Exit codes of processes that would end the same way again: refused, and wrong settings.
FINAL_CODES = (78, 2)
START_S_MAX = 60.0
STOP_S_MAX = 20.0
TICK_S = 0.1
PROBE_EVERY_S = 1.0
PROBE_S_MAX = 1.0
RESTART_S_MIN = 0.5
RESTART_S_MAX = 30.0
#: A process that ran for so long starts afresh with short pauses.
SETTLED_S = 30.0
NEWS_SHOWN = 8
LOG_BYTES_READ = 8192
LOG_CHARS_SHOWN = 300


def up(
    nodes: Annotated[int, typer.Option(min=1, max=NODES_MAX, help="How many nodes. Odd numbers are best.")] = 3,
    separate: Annotated[
        bool, typer.Option("--separate", help="Each service of each node as a process of its own.")
    ] = False,
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the cluster keeps its data.")
    ] = DIRECTORY_DEFAULT,
    port: Annotated[
        int, typer.Option(min=1, max=PORT_MAX, help="Of the first gateway; the ports behind it are used too.")
    ] = PORT_DEFAULT,
    telemetry: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Send telemetry there: see `ordercast serve telemetry`."),
    ] = None,
    tls: Annotated[
        bool, typer.Option("--tls", help="Encrypt everything, with certificates that are made in DIR/tls.")
    ] = False,
    json: Json = False,
) -> None:
    """Run a cluster of real processes on this machine, until Ctrl-C. A process that dies is started again.

    The data is kept: the same command goes on where it stopped. A second Ctrl-C kills what has not stopped yet.
    With --json, one document tells where everything is as soon as the cluster serves.

    Examples: `ordercast up` · `ordercast up --nodes 5 --data /tmp/five --port 7500` · `ordercast up --separate` ·
    `ordercast up --telemetry 127.0.0.1:4317` · `ordercast up --tls`
    """
    from ordercast.local.cluster import LocalCluster

    shape = Shape(nodes, separate)
    if port + shape.ports - 1 > PORT_MAX:
        raise typer.BadParameter(f"this cluster needs {shape.ports} ports from {port} on, up to {PORT_MAX}")
    if telemetry is not None:
        check_address("--telemetry", telemetry)
    options = [] if telemetry is None else [f"--telemetry.endpoint={telemetry}"]
    cluster = LocalCluster(data, nodes=nodes, separate=separate, port=port, options=options)
    with claimed(data):
        is_new = check_shape(data, shape)
        check_nobody_runs(cluster)
        check_ports(cluster)
        if is_new:
            write_shape(data, shape)
        certificates = make_certificates(cluster) if tls else None
        with cluster, Screen(json) as screen, StopRequests() as requests:
            supervisor = ClusterSupervisor(cluster, screen, requests, Probes(cluster, certificates))
            code = supervisor.run(lambda: announce(cluster, screen, port, json, certificates))
    if supervisor.failure:
        fail(code, supervisor.failure)
    raise typer.Exit(code)


# ------------------------------------------------------------------------------------------- before it starts


@dataclass(frozen=True, slots=True)
class Shape:
    """What cannot change between two runs on the same data."""

    nodes: int
    separate: bool

    @property
    def ports(self) -> int:
        """One for each gateway's clients, and one for each process."""
        return self.nodes * (5 if self.separate else 2)

    def __str__(self) -> str:
        return f"--nodes {self.nodes}{' --separate' if self.separate else ''}"


@contextlib.contextmanager
def claimed(directory: Path) -> Iterator[None]:
    """Nobody else runs a cluster here meanwhile. The lock goes with the process, however that ends."""
    try:
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        found = [path.name for path in directory.iterdir()]
        if SHAPE_FILE not in found and any(name != LOCK_FILE for name in found):
            fail(
                ExitCode.USAGE, f"{directory} is not empty, and what is in it is no cluster: choose another --data"
            )
        make_private(directory)
        lock = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, FILE_MODE)
    except OSError as error:
        fail(ExitCode.USAGE, f"{directory} cannot be used: {error.strerror}")
    try:
        if not _lockable(lock):
            fail(ExitCode.UNAVAILABLE, f"{directory} is in use by another `ordercast up`: choose another --data")
        yield
    finally:
        os.close(lock)


def _lockable(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def check_shape(directory: Path, shape: Shape) -> bool:
    """Whether the directory is new. With another shape, what it holds would not be found again."""
    path = directory / SHAPE_FILE
    try:
        with path.open("rb") as file:
            found = json_format.loads(file.read(SHAPE_BYTES_MAX))
        if found["format"] != SHAPE_FORMAT:
            fail(ExitCode.USAGE, f"{path} was written by another version of ordercast")
        before = Shape(int(found["nodes"]), bool(found["separate"]))
    except FileNotFoundError:
        return True
    except (OSError, ValueError, KeyError, TypeError):
        fail(ExitCode.USAGE, f"{path} cannot be read: it is not what `ordercast up` writes")
    if before != shape:
        fail(ExitCode.USAGE, f"{directory} holds a cluster of `{before}`, not of `{shape}`: choose another --data")
    return False


def write_shape(directory: Path, shape: Shape) -> None:
    content = {"format": SHAPE_FORMAT, "nodes": shape.nodes, "separate": shape.separate}
    # Whole or not at all: half a file would shut the data in.
    temporary = directory / f"{SHAPE_FILE}.new"
    temporary.write_text(json_format.dumps(content) + "\n")
    temporary.replace(directory / SHAPE_FILE)


def check_nobody_runs(cluster: "LocalCluster") -> None:
    """An `up` that was killed leaves its processes behind. Each holds a lock as long as it lives."""
    from ordercast.runtime.storage.store import LOCK_FILE as PROCESS_LOCK

    for member in cluster.members.values():
        try:
            lock = os.open(member.data / PROCESS_LOCK, os.O_RDWR)
        except OSError:
            continue  # never started, or a problem that the process itself will tell
        try:
            if not _lockable(lock):
                fail(
                    ExitCode.UNAVAILABLE,
                    f"{member.data} is in use: {member.name} of an earlier cluster still runs. Stop it first.",
                )
        finally:
            os.close(lock)


def check_ports(cluster: "LocalCluster") -> None:
    from ordercast.local.cluster import HOST

    for member in cluster.members.values():
        for port in (member.client_port, member.peer_port):
            if port is not None and not is_free(HOST, port):
                fail(
                    ExitCode.UNAVAILABLE,
                    f"{HOST}:{port} is in use: is another cluster running? Choose another --port",
                )


def make_certificates(cluster: "LocalCluster") -> "LocalCertificates":
    """Make certificates, and tell processes to use them."""
    from ordercast.local.certificates import CertificateError, LocalCertificates

    certificates = LocalCertificates(cluster.directory.resolve() / TLS_FOLDER)
    try:
        certificates.make(cluster.members)
    except CertificateError as error:
        fail(ExitCode.USAGE, f"--tls: {error}")
    except OSError as error:
        fail(ExitCode.USAGE, f"--tls: {certificates.folder} cannot be used: {error.strerror}")
    for member in cluster.members.values():
        member.extra += certificates.settings_of(member.name)
    return certificates


def is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        # Connections that are still being closed do not count; somebody who listens does.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


# ------------------------------------------------------------------------------------------------- stop requests


class StopRequests:
    """How often we were told to stop: Ctrl-C, SIGTERM, or the terminal went away."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.count = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequests":
        for number in self.SIGNALS:
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1


# -------------------------------------------------------------------------------------------------- supervision


class UpState(StrEnum):
    STARTING = "starting"
    SERVING = "serving"
    NOT_SERVING = "not serving"
    WAITING = "restarts soon"
    REFUSED = "refused"
    ENDED = "ended"


@dataclass(slots=True)
class Watched:
    """One process, as the supervisor sees it."""

    member: "Member"
    state: UpState = UpState.STARTING
    started_at: float = 0.0
    restart_at: float = 0.0
    #: How long the next pause before a restart is.
    pause_s: float = RESTART_S_MIN
    groups: int | None = None


class ClusterSupervisor:
    def __init__(
        self, cluster: "LocalCluster", screen: "Screen", requests: StopRequests, probes: "Probes"
    ) -> None:
        self.cluster = cluster
        self.screen = screen
        self.requests = requests
        self.watched = {name: Watched(member) for name, member in cluster.members.items()}
        self.probes = probes
        self.probe_at = 0.0
        #: Why the cluster could not be started.
        self.failure = ""

    def run(self, on_serving: Callable[[], None]) -> ExitCode:
        """Until it is told to stop. What still runs then is stopped, whatever went wrong."""
        failed = self._start()
        if failed is None and not self.requests.count:
            on_serving()
            while not self.requests.count:
                self._tick()
        is_clean = self._stop()
        if failed is not None:
            return failed
        return ExitCode.OK if is_clean else ExitCode.NO

    def _start(self) -> ExitCode | None:
        """None when all processes serve, or when nobody wants them to any more."""
        for watched in self.watched.values():
            self._start_one(watched)
        deadline = time.monotonic() + START_S_MAX
        while not self.requests.count:
            self._tick()
            missing = [name for name, watched in self.watched.items() if watched.state is not UpState.SERVING]
            if not missing:
                return None
            for name in missing:
                if self.watched[name].state is UpState.REFUSED:
                    self.failure = f"{name} does not start: {last_words(self.watched[name].member.log)}"
                    return ExitCode.REFUSED
            if time.monotonic() > deadline:
                log = self.watched[missing[0]].member.log
                self.failure = f"{', '.join(missing)} not healthy after {START_S_MAX:.0f} s: {last_words(log)}"
                return ExitCode.UNAVAILABLE
        return None

    def _start_one(self, watched: Watched) -> None:
        self.cluster.start([watched.member.name])
        watched.started_at = time.monotonic()
        watched.state = UpState.STARTING
        assert watched.member.process is not None
        self.screen.say(f"{watched.member.name} started (pid {watched.member.process.pid})")

    def _tick(self) -> None:
        now = time.monotonic()
        for watched in self.watched.values():
            if watched.state is UpState.WAITING:
                if now >= watched.restart_at:
                    self._start_one(watched)
            elif watched.state is not UpState.REFUSED and not watched.member.is_running:
                self._on_end(watched, now)
        if now >= self.probe_at:
            self.probe_at = now + PROBE_EVERY_S
            self._probe()
            self.screen.draw(list(self.watched.values()))
        time.sleep(TICK_S)

    def _probe(self) -> None:
        serving = self.probes.serving()
        for name, is_serving in serving.items():
            self._on_health(self.watched[name], is_serving)
        groups = self.probes.groups([name for name, is_serving in serving.items() if is_serving])
        for name, watched in self.watched.items():
            watched.groups = groups.get(name, 0) if groups is not None else None

    def _on_health(self, watched: Watched, is_serving: bool) -> None:
        if is_serving and watched.state is not UpState.SERVING:
            watched.state = UpState.SERVING
            self.screen.say(f"{watched.member.name} serves")
        elif not is_serving and watched.state is UpState.SERVING:
            watched.state = UpState.NOT_SERVING
            self.screen.say(f"{watched.member.name} does not answer, or says that it does not serve")

    def _on_end(self, watched: Watched, now: float) -> None:
        member = watched.member
        assert member.process is not None
        code = member.process.returncode
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        if code in FINAL_CODES:
            watched.state = UpState.REFUSED
            self.screen.say(f"{member.name} was refused and is not started again: {last_words(member.log)}")
            return
        if now - watched.started_at > SETTLED_S:
            watched.pause_s = RESTART_S_MIN
        watched.state = UpState.WAITING
        watched.restart_at = now + watched.pause_s
        self.screen.say(f"{member.name} {how}: it is started again in {watched.pause_s:g} s")
        watched.pause_s = min(watched.pause_s * 2, RESTART_S_MAX)

    def _stop(self) -> bool:
        """Whether every process stopped by itself. Another request to stop, or silence, and the rest is killed."""
        asked = self.requests.count
        running = self.cluster.running()
        self.screen.say(f"stopping {len(running)} processes; Ctrl-C again kills them")
        for member in running:
            assert member.process is not None
            member.process.terminate()
        deadline = time.monotonic() + STOP_S_MAX
        while self.cluster.running() and self.requests.count == asked and time.monotonic() < deadline:
            time.sleep(TICK_S)
        left = [member.name for member in self.cluster.running()]
        self.cluster.kill(*left)
        for watched in self.watched.values():
            watched.state = UpState.ENDED
        self.screen.draw(list(self.watched.values()))
        self.screen.say(f"killed {', '.join(left)}" if left else "all processes have stopped")
        failed = [
            m.name for m in running if m.process is not None and m.process.returncode not in (0, -signal.SIGTERM)
        ]
        return not failed


class Probes:
    """Asks all processes at once whether they serve, over connections that stay open."""

    def __init__(self, cluster: "LocalCluster", certificates: "LocalCertificates | None") -> None:
        import grpc
        from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

        from ordercast.local.cluster import HOST
        from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub

        self.cluster = cluster
        self.failed = grpc.RpcError
        self.health = health_pb2
        self.checks: dict[str, Any] = {}
        self.gateways: dict[str, Any] = {}
        for name, member in cluster.members.items():
            # At the peers' port nobody but a process is answered: so it is asked as itself.
            peer = _channel(f"{HOST}:{member.peer_port}", certificates, name)
            self.checks[name] = health_pb2_grpc.HealthStub(peer)
            if member.client_port is not None:
                client = _channel(f"{HOST}:{member.client_port}", certificates, "client")
                self.gateways[name] = GatewayServiceStub(client)

    def serving(self) -> dict[str, bool]:
        """Whether each running process serves, by its name."""
        request = self.health.HealthCheckRequest(service="")
        calls = {
            name: stub.Check.future(request, timeout=PROBE_S_MAX)
            for name, stub in self.checks.items()
            if self.cluster.members[name].is_running
        }
        found = {}
        for name, call in calls.items():
            try:
                found[name] = call.result().status == self.health.HealthCheckResponse.SERVING
            except self.failed:
                found[name] = False
        return found

    def groups(self, names: list[str]) -> dict[str, int] | None:
        """How many groups each process has a replica of; None if no gateway tells."""
        from ordercast.v1.gateway_pb2 import DescribeClusterRequest

        for name in names:
            if name not in self.gateways:
                continue
            try:
                answer = self.gateways[name].DescribeCluster(DescribeClusterRequest(), timeout=PROBE_S_MAX)
            except self.failed:
                return None
            counts: dict[str, int] = {}
            for group in answer.groups:
                for replica in group.replicas:
                    counts[replica] = counts.get(replica, 0) + 1
            return counts
        return None


def _channel(address: str, certificates: "LocalCertificates | None", shown: str) -> Any:
    import grpc

    # A process that was restarted shall not wait for a connection that was given up for long.
    options = [("grpc.max_reconnect_backoff_ms", 1000), ("grpc.initial_reconnect_backoff_ms", 100)]
    if certificates is None:
        return grpc.insecure_channel(address, options=options)
    files = (certificates.ca, certificates.key(shown), certificates.cert(shown))
    credentials = grpc.ssl_channel_credentials(*(path.read_bytes() for path in files))
    return grpc.secure_channel(address, credentials, options=options)


# ------------------------------------------------------------------------------------------------------ showing


class Screen:
    """Shows a table that is drawn again and again on a terminal, and elsewhere a line for each event."""

    def __init__(self, json: bool) -> None:
        self.console = err if json else out
        self.news: deque[str] = deque(maxlen=NEWS_SHOWN)
        self.live = Live(console=self.console, auto_refresh=False) if self.console.is_terminal else None
        self.rows: list[Watched] = []

    def __enter__(self) -> "Screen":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def say(self, text: str) -> None:
        """News: the latest stand below the table."""
        if self.live is None:
            self.tell(text)
        else:
            self.news.append(f"{time.strftime('%H:%M:%S')}  {text}")
            self._refresh()

    def tell(self, text: str) -> None:
        """What stays readable above the table."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def draw(self, rows: list[Watched]) -> None:
        self.rows = rows
        self._refresh()

    def _refresh(self) -> None:
        if self.live is not None:
            self.live.update(
                Stack(_table(self.rows), *(Text(line, style="dim") for line in self.news)), refresh=True
            )


def _table(rows: list[Watched]) -> Table:
    table = Table(title=f"{sum(row.state is UpState.SERVING for row in rows)} of {len(rows)} processes serve")
    for heading in ("process", "services", "state"):
        table.add_column(heading)
    for heading in ("pid", "port", "restarts", "RSS", "groups"):
        table.add_column(heading, justify="right")
    colours = {UpState.SERVING: "green", UpState.REFUSED: "red", UpState.NOT_SERVING: "red"}
    for row in rows:
        member = row.member
        pid = member.process.pid if member.process is not None and member.is_running else None
        memory = resident_bytes(pid) if pid is not None else None
        table.add_row(
            member.name,
            "all" if len(member.services) > 1 else member.services[0],
            Text(row.state.value, style=colours.get(row.state, "yellow")),
            str(pid or "-"),
            str(member.client_port or member.peer_port),
            str(max(0, member.started - 1)),
            f"{memory / (1 << 20):.0f} MiB" if memory is not None else "-",
            str(row.groups) if row.groups is not None and "sequencer" in member.services else "-",
        )
    return table


def resident_bytes(pid: int) -> int | None:
    """None where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def last_words(log: Path) -> str:
    """The last line of a log, for people."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LOG_BYTES_READ))
            lines = file.read(LOG_BYTES_READ).decode(errors="replace").splitlines()
    except OSError:
        return "it has no log"
    line = next((line for line in reversed(lines) if line.strip()), "its log is empty")
    with contextlib.suppress(ValueError, TypeError, KeyError):
        entry = json_format.loads(line)
        line = f"{entry['event']}: {entry['why']}" if "why" in entry else str(entry["event"])
    return line[:LOG_CHARS_SHOWN]


def announce(
    cluster: "LocalCluster", screen: Screen, port: int, json: bool, certificates: "LocalCertificates | None"
) -> None:
    tls = _client_files(certificates)
    if json:
        print_json(
            {
                "gateways": cluster.gateways,
                "data": str(cluster.directory.resolve()),
                "tls": {option: str(path) for option, path in tls.items()} or None,
                "processes": [
                    {
                        "name": member.name,
                        "services": list(member.services),
                        "pid": member.process.pid if member.process is not None else None,
                        "peer_port": member.peer_port,
                        "client_port": member.client_port,
                        "log": str(member.log.resolve()),
                    }
                    for member in cluster.members.values()
                ],
            }
        )
        # Whoever waits for the document may read from a pipe.
        out.file.flush()
        return
    where = "" if port == PORT_DEFAULT else f" -g {cluster.gateways[0]}"
    where += "".join(f" --{option.replace('_', '-')} {path}" for option, path in tls.items())
    screen.tell(f"The cluster serves. Gateways: {', '.join(cluster.gateways)}")
    screen.tell(f"Its data is kept in {cluster.directory}; delete that directory to start afresh.")
    screen.tell("Try it in another terminal:")
    screen.tell(f"  ordercast group create a b --if-missing{where}")
    screen.tell(f"  ordercast publish a,b 'hello, both'{where}")
    screen.tell(f"  ordercast subscribe a --from earliest{where}")
    screen.tell("Ctrl-C stops it.")


def _client_files(certificates: "LocalCertificates | None") -> dict[str, Path]:
    """What commands have to be told, by option."""
    if certificates is None:
        return {}
    shown = {"cert": certificates.cert("client"), "cert_key": certificates.key("client")}
    return {"ca": certificates.ca} | shown
