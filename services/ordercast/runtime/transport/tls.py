"""Certificates: what the two ports show and demand, and how one process dials another.

Between processes both sides show a certificate that `peer_ca` signed. The dialler demands that the other's names
contain the name of the process that it means, whatever its address. Whether the dialler is a process at all, the
server judges (admission.py); whether it is who it says it is, the service that is called, with `peer_names`.

Files may be replaced at any time: new connections use the new ones, and those that are open go on. While the files
do not fit together, as in the middle of being replaced, the ones before stay in use.
"""

import base64
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import unquote

import grpc
import structlog

from ordercast.runtime.process.settings import TlsSettings

log = structlog.get_logger("tls")

#: Of one PEM file: a file that is larger is not one.
FILE_BYTES_MAX = 1 << 20


class TlsError(Exception):
    """A certificate, key or CA file cannot be used."""


class Pem(NamedTuple):
    cert: bytes
    key: bytes
    ca: bytes | None


class Contexts(NamedTuple):
    """The same, for connections that are no gRPC."""

    dialling: ssl.SSLContext
    accepting: ssl.SSLContext


class PemFiles:
    """A certificate, its key, and perhaps who signs the other side's; as they are on disk now."""

    def __init__(self, cert: Path, key: Path, ca: Path | None, uri: str | None = None) -> None:
        """TlsError if they are not usable to begin with. With a URI, the certificate has to have it as a mark."""
        self._cert = cert
        self._key = key
        self._ca = ca
        self._uri = uri
        self._refused: str | None = None
        self._pem, self._contexts = self._load()

    @property
    def pem(self) -> Pem:
        return self._pem

    @property
    def contexts(self) -> Contexts:
        return self._contexts

    def refresh(self) -> bool:
        """Whether there are new ones. Every handshake asks, so a failure is logged once and not each time."""
        try:
            # Contents and not times are compared: two writes may fall into one tick of the file system's clock.
            if self._read() == self._pem:
                self._refused = None
                return False
            self._pem, self._contexts = self._load()
        except TlsError as error:
            if self._refused != str(error):
                log.error("certificates are not replaced", reason=str(error), cert=str(self._cert))
            self._refused = str(error)
            return False
        self._refused = None
        log.info("certificates are replaced", cert=str(self._cert))
        return True

    def _load(self) -> tuple[Pem, Contexts]:
        pem = self._read()
        contexts = Contexts(self._context(ssl.PROTOCOL_TLS_CLIENT), self._context(ssl.PROTOCOL_TLS_SERVER))
        # A context reads the files by itself: it holds what was read only if they did not change.
        if self._read() != pem:
            raise TlsError(f"{self._cert}: being replaced")
        if self._uri is not None and not has_uri(pem.cert, self._uri):
            raise TlsError(
                f"{self._cert} is not marked as a process's, and other processes would refuse it: have it issued "
                f"with the URI {self._uri} among its alternative names, or set tls.peer_uri"
            )
        return pem, contexts

    def _read(self) -> Pem:
        return Pem(_content(self._cert), _content(self._key), _content(self._ca) if self._ca else None)

    def _context(self, side: int) -> ssl.SSLContext:
        context = ssl.SSLContext(side)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self._cert, self._key, password=_no_password)
        except (OSError, ValueError) as error:
            raise TlsError(f"{self._cert} and {self._key} are not a certificate and its key: {error}") from error
        if self._ca:
            context.verify_mode = ssl.CERT_REQUIRED
            try:
                context.load_verify_locations(self._ca)
            except (OSError, ValueError) as error:
                raise TlsError(f"{self._ca} holds no certificates: {error}") from error
        return context


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise TlsError(f"{path}: {error.strerror}") from error
    if len(content) > FILE_BYTES_MAX:
        raise TlsError(f"{path}: larger than {FILE_BYTES_MAX} bytes")
    return content


def has_uri(cert_pem: bytes, uri: str) -> bool:
    """Whether the first certificate of a PEM file, a good one, names this URI. This is advice for its owner:
    whoever is called judges by what a verified certificate says.
    """
    begin, end = cert_pem.find(b"-----BEGIN CERTIFICATE-----"), cert_pem.find(b"-----END CERTIFICATE-----")
    der = base64.b64decode(cert_pem[begin + 27 : end])
    # [6] IMPLICIT IA5String, as RFC 5280 4.2.1.6 encodes a uniformResourceIdentifier.
    return bytes((0x86, len(uri))) + uri.encode() in der


def _no_password() -> NoReturn:
    """Without this, OpenSSL asks for one on the terminal, and the process hangs."""
    raise ValueError("the key is encrypted")


#: Of an address and the name of a process: the address at which it is.
Locate = Callable[[str, str], str]


def as_given(address: str, process: str) -> str:
    return address


class Credentials:
    """What one process shows and demands, on either port and towards its peers."""

    def __init__(self, settings: TlsSettings, locate: Locate = as_given) -> None:
        """TlsError if files are not usable. Without any files there is no encryption.

        `locate` may know better where a process is than its address says.
        """
        self.locate = locate
        self._settings = settings
        self._peers = _peer_files(settings)
        #: What clients are shown, where there are any.
        self._towards_clients: PemFiles | None = None

    def dial(self, address: str, process: str, options: Sequence[tuple[str, Any]] = ()) -> grpc.aio.Channel:
        """A channel to the process of this name, wherever it is now."""
        return self.dial_at(self.locate(address, process), process, options)

    def dial_at(self, address: str, name: str, options: Sequence[tuple[str, Any]] = ()) -> grpc.aio.Channel:
        """A channel to just this address, over a connection of its own, with the certificate of now."""
        # Without a pool of its own, a channel may get a connection that was made with an older certificate.
        given = [*options, ("grpc.use_local_subchannel_pool", 1)]
        if self._peers is None:
            return grpc.aio.insecure_channel(address, options=given)
        self._peers.refresh()
        pem = self._peers.pem
        credentials = grpc.ssl_channel_credentials(pem.ca, pem.key, pem.cert)
        # The name to look for in the certificate: addresses change, names of processes do not.
        given.append(("grpc.ssl_target_name_override", name))
        return grpc.aio.secure_channel(address, credentials, options=given)

    def dialling(self) -> ssl.SSLContext | None:
        """For a connection to another process that is no gRPC. None without TLS."""
        if self._peers is None:
            return None
        self._peers.refresh()
        return self._peers.contexts.dialling

    def accepting(self) -> ssl.SSLContext | None:
        """For a connection of another process that is no gRPC: it has to show a certificate. None without TLS."""
        if self._peers is None:
            return None
        self._peers.refresh()
        return self._peers.contexts.accepting

    def for_peers(self) -> grpc.ServerCredentials | None:
        """For the peers' port: callers have to show a certificate that peer_ca signed. None without TLS."""
        files = _peer_files(self._settings)
        return _server(files) if files else None

    def for_clients(self) -> grpc.ServerCredentials | None:
        """For the clients' port: clients need a certificate only if there is a client_ca. None without TLS."""
        given = self._settings
        if given.client_cert is None or given.client_key is None:
            return None
        self._towards_clients = PemFiles(given.client_cert, given.client_key, given.client_ca)
        return _server(self._towards_clients)

    def shown(self) -> dict[str, bytes]:
        """The certificates that this process shows now, by towards whom; as PEM."""
        files = {"peers": self._peers, "clients": self._towards_clients}
        return {towards: each.pem.cert for towards, each in files.items() if each is not None}


def _peer_files(settings: TlsSettings) -> PemFiles | None:
    if settings.peer_cert is None or settings.peer_key is None or settings.peer_ca is None:
        return None
    return PemFiles(settings.peer_cert, settings.peer_key, settings.peer_ca, settings.peer_uri)


def _server(files: PemFiles) -> grpc.ServerCredentials:
    def configuration() -> grpc.ServerCertificateConfiguration:
        pem = files.pem
        return grpc.ssl_server_certificate_configuration([(pem.key, pem.cert)], pem.ca)

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        """gRPC asks before each handshake; None means that nothing changed."""
        return configuration() if files.refresh() else None

    return grpc.dynamic_ssl_server_credentials(
        configuration(),
        fetch,  # type: ignore[arg-type]  # the stubs do not know of None
        require_client_authentication=files.pem.ca is not None,
    )


# --- Who calls


def peer_address(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """Where a call comes from, without the port; gRPC has `ipv4:10.0.0.1:5000` and `ipv6:%5B::1%5D:5000`."""
    _, _, address = unquote(context.peer()).partition(":")
    return address.rpartition(":")[0].strip("[]")


def peer_names(context: grpc.aio.ServicerContext[Any, Any]) -> list[str] | None:
    """The names in the caller's certificate: DNS names, and the common name. None without TLS."""
    auth = context.auth_context()
    if not _encrypted(auth):
        return None
    return list(dict.fromkeys(_texts(auth, "peer_dns") + _texts(auth, "x509_common_name")))


def peer_uris(context: grpc.aio.ServicerContext[Any, Any]) -> list[str] | None:
    """The URIs among the alternative names in the caller's certificate. None without TLS."""
    auth = context.auth_context()
    return _texts(auth, "peer_uri") if _encrypted(auth) else None


def client_identity(context: grpc.aio.ServicerContext[Any, Any]) -> str | None:
    """Whom the client's certificate names: its common name, else its first alternative name. None without one."""
    auth = context.auth_context()
    names = _texts(auth, "x509_common_name") + _texts(auth, "x509_subject_alternative_name")
    return next((name for name in names if name), None) if _encrypted(auth) else None


def _encrypted(auth: Any) -> bool:
    return _texts(auth, "transport_security_type") == ["ssl"]


def _texts(auth: Any, key: str) -> list[str]:
    return [value.decode("utf-8", errors="replace") for value in auth.get(key, ())]
