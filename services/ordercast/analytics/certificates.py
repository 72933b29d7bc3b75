"""What readers of the spool show to the telemetry service, and how they recognise it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files: who signs the service's certificate, and what one shows, if it asks for that."""

    ca: Path
    cert: Path | None = None
    key: Path | None = None
    #: The name in the service's certificate, if it is not the host that is dialled.
    server_name: str | None = None
