"""What the telemetry service can be told. It is a process of its own, and so are its settings.

`kafka.topic` is the flag `--kafka.topic`, the variable `ORDERCAST_TELEMETRY_KAFKA__TOPIC`, and `topic` in the
table `[kafka]` of the file that `--config` names.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, FilePath, ValidationError
from pydantic import model_validator as validates_model
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from ordercast.runtime.process.setting_help import HelpPage, Panel
from ordercast.runtime.process.setting_sources import Section, explained, gather, to_toml
from ordercast.runtime.process.settings import (
    NAME_PATTERN,
    Address,
    Bytes,
    Count,
    Directory,
    LoggingSettings,
    Seconds,
    TlsSettings,
    Uri,
    check_exposed,
    is_loopback,
    separated,
)

ENV_PREFIX = "ORDERCAST_TELEMETRY_"
#: What nodes are told about telemetry: it is a section of theirs.
OF_NODES = re.compile(r"ORDERCAST_TELEMETRY__")
REQUEST_BYTES_MAX = 64 << 20
URIS_MAX = 16


class TlsFiles(Section):
    """Files in PEM. They are read again when they change."""

    cert: FilePath | None = Field(default=None, description="what this process shows to senders and readers")
    key: FilePath | None = Field(default=None, description="the key of cert")
    ca: FilePath | None = Field(
        default=None, description="if set, senders and readers need a certificate that it signed"
    )
    uris: Annotated[tuple[Uri, ...], NoDecode, BeforeValidator(separated)] = Field(
        default=(),
        max_length=URIS_MAX,
        description="if set, one of them has to be among the alternative names of that certificate",
    )

    @validates_model(mode="after")
    def _whole(self) -> "TlsFiles":
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key go together")
        if self.ca and not self.cert:
            raise ValueError("ca needs cert and key")
        if self.uris and not self.ca:
            raise ValueError("uris needs ca: without it nobody shows a certificate")
        return self

    def for_server(self) -> TlsSettings:
        return TlsSettings(client_cert=self.cert, client_key=self.key, client_ca=self.ca)


class KafkaSettings(Section):
    bootstrap: str = Field(default="", description="host:port,... of brokers; needed with sink kafka")
    topic: str = Field(
        default="ordercast-telemetry",
        pattern=r"^[a-zA-Z0-9._-]{1,249}$",
        description="where records go; it has to be there",
    )
    message_bytes_max: int = Field(
        default=900_000, ge=65_536, le=64 << 20, description="of one message; the broker has to take it"
    )
    timeout_s: Seconds = Field(
        default=10.0, description="how long Kafka may take; beyond, the sender is told to come back"
    )
    options: dict[str, str] = Field(
        default={}, description="name=value, passed on to librdkafka, such as security.protocol=SSL"
    )

    @validates_model(mode="after")
    def _promises_stay(self) -> "KafkaSettings":
        fixed = [name for name in ("acks", "enable.idempotence", "request.required.acks") if name in self.options]
        if fixed:
            raise ValueError(f"options: {fixed[0]} cannot be set: what is acknowledged has to be safe")
        return self


class Settable(BaseSettings):
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

    name: str = Field(default="telemetry", pattern=NAME_PATTERN, description="of this process, in logs")
    listen: Address = Field(default="127.0.0.1:4317", description="host:port, for senders (OTLP) and readers")
    metrics_listen: Address | None = Field(
        default=None, description="host:port of /metrics, /healthz and /readyz; none: there are none"
    )
    sink: Literal["spool", "kafka"] = Field(default="spool", description="where records go")
    data: Directory | None = Field(
        default=None, description="directory of the spool; has to be set unless records go to Kafka"
    )
    segment_bytes: int = Field(
        default=16 << 20, ge=1024, le=1 << 30, description="a segment of the spool that is as large is closed"
    )
    seal_s: Seconds = Field(
        default=2.0,
        description="one that is as old is closed too: so long, and a little, readers wait for a record",
    )
    retention_bytes: int = Field(
        default=10 << 30, ge=1 << 16, description="beyond so many bytes the oldest segments go"
    )
    retention_age_s: float = Field(
        default=0.0,
        ge=0,
        le=86_400 * 3650,
        allow_inf_nan=False,
        description="segments that are older go; 0: they stay at any age",
    )
    reserve_bytes: int = Field(
        default=64 << 20, ge=0, le=1 << 46, description="below so much free room on the disk nothing is taken"
    )
    queue_bytes_max: Bytes = Field(
        default=64 << 20, le=1 << 34, description="what may wait to be written; beyond, senders have to come back"
    )
    unsealed_bytes_max: Bytes = Field(
        default=512 << 20, le=1 << 40, description="what may wait to be sealed; beyond, senders have to come back"
    )
    request_bytes_max: int = Field(
        default=16 << 20, ge=1024, le=REQUEST_BYTES_MAX, description="one request, in bytes; beyond, it is refused"
    )
    request_records_max: Count = Field(default=50_000, description="records in one request; beyond, it is refused")
    reads_max: Count = Field(default=64, description="reads of the spool that go on at once")
    connections_max: Count = Field(default=1024, description="connections of senders and readers")
    drain_s: float = Field(
        default=5.0, ge=0, le=3600, description="how long calls may go on after a stop, in seconds"
    )
    kafka: KafkaSettings = Field(default=KafkaSettings(), description="where records go with sink kafka")
    log: LoggingSettings = Field(default=LoggingSettings(), description="logs, to stderr")
    tls: TlsFiles = Field(default=TlsFiles(), description="PEM files; none: no encryption")
    insecure: bool = Field(
        default=False,
        description="listens beyond this machine even without TLS: whoever can connect sends and reads",
    )

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: Any, **__: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed: `parse` joins the sources."""
        return (init_settings,)

    @validates_model(mode="after")
    def _the_sink_is_known(self) -> "Settable":
        if self.sink == "spool" and self.data is None:
            raise ValueError("data: has to be set")
        if self.sink == "kafka" and not self.kafka.bootstrap:
            raise ValueError("kafka.bootstrap: has to be set")
        if self.listen == self.metrics_listen:
            raise ValueError(f"listen and metrics_listen are both {self.listen}")
        return self

    @property
    def exposed(self) -> list[str]:
        """Where others than this machine can connect without TLS, as `setting host:port`."""
        return [f"listen {self.listen}"] if self.tls.cert is None and not is_loopback(self.listen) else []

    @validates_model(mode="after")
    def _is_not_exposed_by_mistake(self) -> "Settable":
        check_exposed(self.exposed, self.insecure)
        return self

    @validates_model(mode="after")
    def _a_queue_holds_requests(self) -> "Settable":
        if self.queue_bytes_max < 2 * self.request_bytes_max:
            raise ValueError("queue_bytes_max has to be at least twice request_bytes_max")
        return self


# --- Help

#: Every setting is in one of them.
PANELS = (
    Panel("To begin with", ("data", "listen", "sink", "name", "metrics_listen")),
    Panel("Encryption: PEM files, read again when they change", ("tls", "insecure")),
    Panel("Logs, to stderr", ("log",)),
    Panel("The spool", ("retention_bytes", "retention_age_s", "reserve_bytes", "segment_bytes", "seal_s")),
    Panel("Kafka, with --sink kafka", ("kafka",)),
    Panel(
        "What it takes in at most",
        (
            "connections_max",
            "reads_max",
            "request_bytes_max",
            "request_records_max",
            "queue_bytes_max",
            "unsealed_bytes_max",
            "drain_s",
        ),
    ),
)
ABOUT = (
    "Takes in what services tell about themselves, and keeps it for readers, until it is told to stop.\n",
    "Example: ordercast serve telemetry --data ./telemetry\n",
    f"A setting is a flag, a variable ({ENV_PREFIX}LOG__LEVEL=debug) or a line of a file; the former wins.\n",
)


def parse(argv: list[str]) -> Settable:
    """SettingsError if they are no good; `--help` and `--print-config` print and raise SystemExit(0)."""
    page = HelpPage(Settable, "ordercast serve telemetry [SETTINGS]", ABOUT, PANELS)
    given = gather(Settable, argv, page.show, OF_NODES)
    try:
        settings = Settable(**given.values)
    except ValidationError as error:
        raise explained(error) from error
    if given.is_to_print:
        print(to_toml("services: telemetry", settings.model_dump(mode="json", exclude_none=True)), end="")
        raise SystemExit(0)
    return settings
