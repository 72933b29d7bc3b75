"""What a process can be told: one schema, settable by flags, environment and a file, in this precedence.

A setting `storage.map_bytes` is the flag `--storage.map-bytes`, the variable `ORDERCAST_STORAGE__MAP_BYTES`, and
`map_bytes` in the table `[storage]` of the TOML file that `--config` names. Whatever has no meaning is an error
that names it, wherever it stands: a setting that is silently ignored is worse than a process that does not start.
"""

import ipaddress
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, FilePath, ValidationError
from pydantic import model_validator as validates_model
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from ordercast.core.limits import Limit, table
from ordercast.runtime.process.setting_help import HelpPage, Panel, Word
from ordercast.runtime.process.setting_sources import Section, explained, gather, to_toml

Service = Literal["membership", "consensus", "sequencer", "gateway"]

ENV_PREFIX = "ORDERCAST_"
NAME_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
#: What one gRPC message can hold; a frame carries at least one envelope, with its header.
MESSAGE_BYTES_MAX = 64 << 20
#: One frame between processes: a snapshot is one message, with the log that its sender keeps.
PEER_MESSAGE_BYTES_MAX = 1 << 30
ENVELOPE_BYTES_MAX = 32 << 20
MEMBERSHIP_NODES_MAX = 15
#: The mark of a process's certificate, unless another one is set.
PEER_URI = "ordercast:peer"
#: Its length is one byte in a certificate.
URI_CHARACTERS_MAX = 127

#: Variables that the telemetry service is set with; `TELEMETRY__` would be a section of ours.
OF_THE_TELEMETRY_SERVICE = re.compile(r"ORDERCAST_TELEMETRY_[^_]")


# --- Addresses


def split_address(address: str) -> tuple[str, int]:
    """`host:port` as (host, port); an IPv6 address stands in brackets, and comes back without them."""
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{address!r}: an IPv6 address has to stand in brackets")
    if not colon or not re.fullmatch(r"[A-Za-z0-9._:%-]+", host):
        raise ValueError(f"{address!r} is not host:port")
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise ValueError(f"{address!r}: the port has to be a number from 1 to 65535")
    return host, int(port)


def _address(text: str) -> str:
    split_address(text)
    return text


def _dialable(text: str, setting: str) -> None:
    if split_address(text)[0] in ("0.0.0.0", "::"):
        raise ValueError(f"nobody can dial {text}: set {setting} to what others reach this process by")


def is_loopback(address: str) -> bool:
    """Whether nobody but this machine can dial host:port. A host name other than localhost may be anything."""
    host = split_address(address)[0]
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_exposed(exposed: Sequence[str], is_allowed: bool) -> None:
    """ValueError if it is not, and `exposed`, as `setting host:port`, is open to others without TLS."""
    if exposed and not is_allowed:
        raise ValueError(
            f"{' and '.join(exposed)}: without TLS, whoever can connect there may do everything. Set tls, listen "
            "at 127.0.0.1, or say --insecure (insecure = true) if nobody else can reach it"
        )


def _member(text: str) -> str:
    name, equals, address = text.partition("=")
    if not equals or not re.fullmatch(NAME_PATTERN, name):
        raise ValueError(f"{text!r} is not name=host:port")
    split_address(address)
    return text


def _domain_share(text: str) -> str:
    domain, equals, share = text.partition("=")
    try:
        is_share = 0 <= float(share) <= 1
    except ValueError:
        is_share = False
    if not domain or not equals or not is_share:
        raise ValueError(f"{text!r} is not domain=share, with a share from 0 to 1")
    return text


def separated(value: object) -> object:
    """Flags and variables give a list as one text, or as a list of such texts."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [part.strip() for item in value for part in item.split(",") if part.strip()]
    return value


def _directory(path: Path) -> Path:
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is not a directory")
    return path


Address = Annotated[str, AfterValidator(_address), Word("HOST:PORT")]
#: With a scheme, and without what certificates or lists of settings cannot hold.
Uri = Annotated[
    str, Field(pattern=r"^[A-Za-z][A-Za-z0-9+.-]*:[!-+\--~]+$", max_length=URI_CHARACTERS_MAX), Word("URI")
]
Member = Annotated[str, AfterValidator(_member), Word("NAME=HOST:PORT,...")]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1 << 20)]
Bytes = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
DomainShare = Annotated[str, AfterValidator(_domain_share), Word("DOMAIN=SHARE,...")]
Directory = Annotated[Path, AfterValidator(_directory), Word("DIRECTORY")]


# --- Sections


class StorageSettings(Section):
    map_bytes: int = Field(
        default=64 << 30,
        ge=16 << 20,
        le=1 << 46,
        description="how large the store may grow; address space, not disk, is taken",
    )
    reserve_bytes: int = Field(
        default=64 << 20, ge=0, le=1 << 40, description="below so much free room the process stores nothing new"
    )

    @validates_model(mode="after")
    def _reserve_fits(self) -> "StorageSettings":
        if self.reserve_bytes * 2 > self.map_bytes:
            raise ValueError("reserve_bytes may be at most half of map_bytes")
        return self


class LimitSettings(Section):
    producer_messages_max: Count = Field(
        default=4096, description="messages a producer may have without a receipt"
    )
    envelopes_open_max: Count = Field(default=64, description="envelopes of this gateway that are not finished")
    envelope_messages_max: Count = Field(default=1024, description="messages in one envelope")
    envelope_bytes_max: Bytes = Field(
        default=1 << 20, le=ENVELOPE_BYTES_MAX, description="messages of one envelope together, in bytes"
    )
    payload_bytes_max: Bytes = Field(default=1 << 20, le=ENVELOPE_BYTES_MAX, description="one message, in bytes")
    waiting_bytes_max: Bytes = Field(
        default=64 << 20, le=1 << 34, description="what producers may have waiting here, all together, in bytes"
    )
    backlog_s_max: Seconds = Field(
        default=0.25, description="how much longer a message may take for what is there before it; beyond, refused"
    )
    groups_max: Count = Field(default=64, description="groups that one message may be for")
    connections_max: Count = Field(default=4096, description="connections of clients")
    subscriptions_max: Count = Field(default=1024, description="subscriptions that are open")

    @validates_model(mode="after")
    def _payload_fits(self) -> "LimitSettings":
        if self.payload_bytes_max > self.envelope_bytes_max:
            raise ValueError("payload_bytes_max may not be above envelope_bytes_max")
        return self

    def table(self) -> dict[str, Limit]:
        """What requests of clients may have."""
        return table(self.payload_bytes_max, self.envelope_bytes_max, self.envelope_messages_max, self.groups_max)


class DetectionSettings(Section):
    suspect_s: Seconds = Field(
        default=3.0, description="a process that is silent for so long is suspected to be down"
    )
    end_after_s: Seconds = Field(default=300.0, description="a process that is silent for so long is over")

    @validates_model(mode="after")
    def _suspected_first(self) -> "DetectionSettings":
        if self.end_after_s <= self.suspect_s:
            raise ValueError("end_after_s has to be above suspect_s")
        return self


class ReplacementSettings(Section):
    after_s: Annotated[float, Field(ge=0, le=86_400 * 30, allow_inf_nan=False)] = Field(
        default=0.0, description="a node that is over for so long is replaced in its groups; 0: never by itself"
    )
    cancel_after_s: Seconds = Field(
        default=300.0, description="a change whose newcomer is over for so long is given up"
    )
    moves_at_once: Count = Field(default=2, description="groups that are moved away from nodes at a time")


class LoggingSettings(Section):
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="the least that is logged"
    )
    format: Literal["json", "console"] = Field(
        default="json", description="a JSON object in each line, or text for people"
    )


class TelemetrySettings(Section):
    """Without an endpoint and without metrics_listen, nothing is measured."""

    endpoint: Address | None = Field(
        default=None, description="host:port of an OTLP receiver: the telemetry service, or a collector"
    )
    service_name: str = Field(
        default="telemetry", pattern=NAME_PATTERN, description="with TLS: the name in its certificate"
    )
    metrics_listen: Address | None = Field(
        default=None, description="host:port of /metrics, for Prometheus, and of /healthz and /readyz"
    )
    sampling: Share = Field(default=0.01, description="the share of envelopes whose traces are kept")
    sampling_by_domain: Annotated[tuple[DomainShare, ...], NoDecode, BeforeValidator(separated)] = Field(
        default=(), description="where it is another one: domain=share,..."
    )
    metrics_s: Seconds = Field(default=5.0, description="how often metrics leave for the endpoint, in seconds")
    queue_records_max: Count = Field(
        default=50_000, description="records that may wait for the endpoint, of each kind; beyond, dropped"
    )

    @property
    def is_on(self) -> bool:
        return self.endpoint is not None or self.metrics_listen is not None

    def share_of(self, domain: str) -> float:
        """The share of the domain's envelopes whose traces are kept: none if they are sent nowhere."""
        if self.endpoint is None:
            return 0.0
        shares = dict(text.split("=") for text in self.sampling_by_domain)
        return float(shares.get(domain, self.sampling))


class TlsSettings(Section):
    """Files in PEM. They are read again when they change."""

    peer_cert: FilePath | None = Field(
        default=None, description="this process towards other processes, as server and client"
    )
    peer_key: FilePath | None = Field(default=None, description="the key of peer_cert")
    peer_ca: FilePath | None = Field(default=None, description="who signs the certificates of processes")
    peer_uri: Uri = Field(
        default=PEER_URI,
        description="among the alternative names of every process's certificate, and of no client's",
    )
    client_cert: FilePath | None = Field(default=None, description="this process towards clients")
    client_key: FilePath | None = Field(default=None, description="the key of client_cert")
    client_ca: FilePath | None = Field(
        default=None, description="if set, clients need a certificate that it signed"
    )

    @validates_model(mode="after")
    def _whole_groups(self) -> "TlsSettings":
        self._all_or_none("peer_cert", "peer_key", "peer_ca")
        self._all_or_none("client_cert", "client_key")
        if self.client_ca and not self.client_cert:
            raise ValueError("client_ca needs client_cert and client_key")
        return self

    def _all_or_none(self, *names: str) -> None:
        missing = [name for name in names if getattr(self, name) is None]
        if missing and len(missing) < len(names):
            raise ValueError(f"{', '.join(names)} go together: {', '.join(missing)} missing")


class KubernetesSettings(Section):
    """Where processes run in pods, and are called as these: a second way to find them, beside their addresses."""

    selector: str = Field(
        default="",
        max_length=1024,
        description="labels of the EndpointSlices in which pods are found by their names; none: by DNS alone",
    )
    namespace: str = Field(
        default="",
        pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$",
        description="where those are; none: that of this pod's service account",
    )

    @validates_model(mode="after")
    def _looks_for_something(self) -> "KubernetesSettings":
        if self.namespace and not self.selector:
            raise ValueError("namespace needs selector")
        return self


# --- The process


# --help tells the default by the name of the function that makes it.
def as_peer_listen(data: dict[str, Any]) -> str:
    return data["peer_listen"]


def as_client_listen(data: dict[str, Any]) -> str:
    return data["client_listen"]


class Settable(BaseSettings):
    """What flags, variables and the file can set."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        validate_default=True,
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        cli_kebab_case=True,
        cli_avoid_json=True,
        cli_hide_none_type=True,
        cli_implicit_flags="toggle",
    )

    name: str = Field(
        pattern=NAME_PATTERN, description="of this process: unique in the cluster, and kept for good"
    )
    zone: str = Field(default="", max_length=63, description="where it runs; replicas are spread over zones")
    data: Directory = Field(description="directory of all that has to last")
    peer_listen: Address = Field(default="127.0.0.1:7410", description="host:port, for other processes")
    peer_advertise: Address = Field(
        default_factory=as_peer_listen, description="host:port by which processes reach it"
    )
    frames_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="on the host of peer_listen, where processes connect after they have called; 0: any free port",
    )
    client_listen: Address = Field(
        default="127.0.0.1:7400", description="host:port, for clients; only of a gateway"
    )
    client_advertise: Address = Field(
        default_factory=as_client_listen, description="host:port by which clients reach it"
    )
    membership: Annotated[tuple[Member, ...], NoDecode, BeforeValidator(separated)] = Field(
        default=(),
        max_length=MEMBERSHIP_NODES_MAX,
        description="the membership nodes: name=host:port,...; without any, a membership node is the only one",
    )
    storage: StorageSettings = Field(default=StorageSettings(), description="the store in the data directory")
    limits: LimitSettings = Field(default=LimitSettings(), description="what a gateway takes in at most")
    detection: DetectionSettings = Field(
        default=DetectionSettings(), description="when membership takes a process for dead"
    )
    replacement: ReplacementSettings = Field(
        default_factory=ReplacementSettings, description="how groups get new replicas by themselves"
    )
    heartbeat_s: Seconds = Field(
        default=0.5, description="how often membership hears from this process, in seconds"
    )
    drain_s: float = Field(
        default=10.0, ge=0, le=3600, description="how long calls may go on after a stop, in seconds"
    )
    peer_queue_bytes_max: Bytes = Field(
        default=64 << 20, le=1 << 34, description="what may wait for one peer; beyond, the connection starts anew"
    )
    log: LoggingSettings = Field(default=LoggingSettings(), description="logs, to stderr")
    telemetry: TelemetrySettings = Field(
        default=TelemetrySettings(), description="metrics, traces and deliveries, for whoever looks on"
    )
    tls: TlsSettings = Field(
        default=TlsSettings(), description="PEM files, read again when they change; none: no encryption"
    )
    insecure: bool = Field(
        default=False,
        description="listens beyond this machine even without TLS: whoever can connect may do everything",
    )
    kubernetes: KubernetesSettings = Field(
        default=KubernetesSettings(), description="where this process is a pod of Kubernetes"
    )
    profile: bool = Field(default=False, description="logs at the end where the time went, by machine and event")
    stages: bool = Field(default=False, description="logs at the end how long envelopes took, by stage")
    fault_injection: bool = Field(default=False, description="serves FaultService; for tests only")
    wall_offset_s: float = Field(
        default=0.0,
        ge=-1e9,
        le=1e9,
        allow_inf_nan=False,
        description="added to the wall clock, in seconds; for tests only",
    )

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: Any, **__: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed: `parse` joins the sources, so that a test's settings do not depend on its shell."""
        return (init_settings,)


class ProcessSettings(Settable):
    """The settings of one process, with the services that its command chose."""

    services: tuple[Service, ...] = Field(min_length=1)

    @property
    def members(self) -> dict[str, str]:
        """The peer addresses of the membership nodes, by name."""
        if not self.membership:
            return {self.name: self.peer_advertise}
        return {name: address for name, _, address in (member.partition("=") for member in self.membership)}

    @validates_model(mode="after")
    def _services_are_distinct(self) -> "ProcessSettings":
        if len(set(self.services)) < len(self.services):
            raise ValueError("a service is named twice")
        return self

    @validates_model(mode="after")
    def _others_can_reach_it(self) -> "ProcessSettings":
        _dialable(self.peer_advertise, "peer_advertise")
        if "gateway" in self.services:
            _dialable(self.client_advertise, "client_advertise")
            if self.client_listen == self.peer_listen:
                raise ValueError(f"client_listen and peer_listen are both {self.peer_listen}")
        return self

    @property
    def exposed(self) -> list[str]:
        """Where others than this machine can connect without TLS, as `setting host:port`."""
        ports = {"peer_listen": (self.peer_listen, self.tls.peer_cert)}
        if "gateway" in self.services:
            ports["client_listen"] = (self.client_listen, self.tls.client_cert)
        return [
            f"{name} {address}"
            for name, (address, cert) in ports.items()
            if cert is None and not is_loopback(address)
        ]

    @validates_model(mode="after")
    def _is_not_exposed_by_mistake(self) -> "ProcessSettings":
        check_exposed(self.exposed, self.insecure)
        return self

    @validates_model(mode="after")
    def _membership_is_known(self) -> "ProcessSettings":
        runs_it = "membership" in self.services
        if not self.membership and not runs_it:
            raise ValueError("membership: name the membership nodes, as name=host:port,...")
        if len(self.members) < len(self.membership):
            raise ValueError("membership: a name is there twice")
        if runs_it and self.name not in self.members:
            raise ValueError(f"membership: {self.name} runs membership and is not among the nodes")
        if not runs_it and self.name in self.members:
            raise ValueError(f"membership: {self.name} is among the nodes and does not run membership")
        return self

    @validates_model(mode="after")
    def _silence_is_longer_than_a_beat(self) -> "ProcessSettings":
        # One late heartbeat is no news.
        if self.detection.suspect_s < 2 * self.heartbeat_s:
            raise ValueError("detection.suspect_s has to be at least twice heartbeat_s")
        return self

    @validates_model(mode="after")
    def _a_queue_holds_an_envelope(self) -> "ProcessSettings":
        if self.peer_queue_bytes_max < 2 * self.limits.envelope_bytes_max:
            raise ValueError("peer_queue_bytes_max has to be at least twice limits.envelope_bytes_max")
        return self


# --- Help

#: Every setting is in one of them.
PANELS = (
    Panel("To begin with", ("name", "data", "membership")),
    Panel("Addresses", ("client_listen", "client_advertise", "peer_listen", "peer_advertise", "frames_port")),
    Panel("Encryption: PEM files, read again when they change", ("tls", "insecure")),
    Panel("Logs, to stderr", ("log",)),
    Panel("The store in the data directory", ("storage",)),
    Panel("What a gateway takes in at most", ("limits",)),
    Panel("Places and patience", ("zone", "heartbeat_s", "drain_s", "peer_queue_bytes_max")),
    Panel("When membership takes a process for dead", ("detection",)),
    Panel("How groups get new replicas by themselves", ("replacement",)),
    Panel("Metrics, traces and deliveries, for whoever looks on", ("telemetry",)),
    Panel("Where this process is a pod of Kubernetes", ("kubernetes",)),
    Panel("For tests and measurements", ("profile", "stages", "fault_injection", "wall_offset_s")),
)
SERVICES_IN_WORDS = (
    ("membership", "who is there, and which groups, on which nodes; an odd number of nodes, the same for good"),
    ("consensus", "votes on the order where messages meet"),
    ("sequencer", "keeps the logs of groups, and brings them in one order"),
    ("gateway", "where clients connect"),
    ("telemetry", "takes in what the others tell about themselves; a process of its own"),
)
ABOUT = (
    "Runs services in this process until it is told to stop. `ordercast up` starts a cluster to try.\n",
    "A cluster of one node: ordercast serve membership consensus sequencer gateway --name n1 --data ./n1\n",
    f"A setting is a flag, a variable ({ENV_PREFIX}LOG__LEVEL=debug) or a line of a file; the former wins.\n",
)


def help_page(services: tuple[str, ...]) -> HelpPage:
    """Without services, it says which there are."""
    usage = f"ordercast serve {' '.join(services) or 'SERVICE...'} [SETTINGS]"
    return HelpPage(Settable, usage, ABOUT, PANELS, () if services else SERVICES_IN_WORDS)


# --- Sources


def parse(argv: list[str], services: tuple[str, ...]) -> ProcessSettings:
    """The settings from flags, then the environment, then the file. SettingsError if they are no good.

    `--help` and `--print-config` print and raise SystemExit(0).
    """
    given = gather(Settable, argv, help_page(services).show, OF_THE_TELEMETRY_SERVICE)
    try:
        settings = ProcessSettings(**{**given.values, "services": services})
    except ValidationError as error:
        raise explained(error) from error
    if given.is_to_print:
        values = settings.model_dump(mode="json", exclude={"services"}, exclude_none=True)
        print(to_toml(f"services: {' '.join(services)}", values), end="")
        raise SystemExit(0)
    return settings
