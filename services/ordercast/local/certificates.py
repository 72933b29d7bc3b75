"""Certificates for a cluster on this machine: an authority of its own, and a certificate for each process.

As in clusters elsewhere, one authority signs for everybody, and a mark tells processes from clients
(runtime/transport/admission.py). The program `openssl` makes them: nothing else here needs a package that could.
The authority is made once. Certificates are made anew at each start, so that none runs out in a cluster that is
kept.
"""

import os
import secrets
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ordercast.runtime.process.settings import PEER_URI

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 365
OPENSSL_S_MAX = 60
#: So that nothing depends on the configuration of the machine.
CONFIG = "[req]\ndistinguished_name = name\n[name]\n"
AUTHORITY = "basicConstraints = critical, CA:TRUE\nkeyUsage = critical, keyCertSign, cRLSign\n"
#: What they are called here, beside the name of the process.
HERE = "DNS:localhost, IP:127.0.0.1"
PROCESS = f"subjectAltName = DNS:{{name}}, {HERE}, URI:{PEER_URI}\nextendedKeyUsage = serverAuth, clientAuth\n"
TELEMETRY = f"subjectAltName = DNS:{{name}}, {HERE}\nextendedKeyUsage = serverAuth\n"
CLIENT = "extendedKeyUsage = clientAuth\n"


class CertificateError(Exception):
    """There is no openssl, or it does not do what it is told."""


class LocalCertificates:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = folder / "ca.crt"

    def cert(self, name: str) -> Path:
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def make(self, processes: Iterable[str]) -> None:
        """For these processes, for a telemetry service and for a client; CertificateError if that fails."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if not (self.ca.exists() and self.key("ca").exists()):
            self._issue("ca", "ordercast on this machine", AUTHORITY, AUTHORITY_DAYS)
        for name in processes:
            self._issue(name, name, PROCESS.format(name=name), CERTIFICATE_DAYS)
        self._issue("telemetry", "telemetry", TELEMETRY.format(name="telemetry"), CERTIFICATE_DAYS)
        self._issue("client", "client", CLIENT, CERTIFICATE_DAYS)

    def settings_of(self, process: str) -> list[str]:
        """As flags of that process, towards other processes and towards clients."""
        cert, key = self.cert(process), self.key(process)
        files = {"cert": cert, "key": key, "ca": self.ca}
        return [f"--tls.{side}-{kind}={path}" for side in ("peer", "client") for kind, path in files.items()]

    def _issue(self, name: str, common_name: str, extensions: str, days: int) -> None:
        """Signed by the authority; which signs itself. Files are whole, or as they were."""
        with tempfile.TemporaryDirectory(dir=self.folder) as directory:
            key, request, cert = (Path(directory) / file for file in ("key", "request", "cert"))
            config, wanted = Path(directory) / "config", Path(directory) / "extensions"
            config.write_text(CONFIG)
            wanted.write_text(extensions)
            openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
            openssl("req", "-new", "-config", config, "-subj", f"/CN={common_name}", "-key", key, "-out", request)
            signer = ("-signkey", key) if name == "ca" else ("-CA", self.ca, "-CAkey", self.key("ca"))
            serial = ("-set_serial", str(secrets.randbits(120) + 1))
            validity = ("-sha256", "-days", str(days), "-extfile", wanted)
            openssl("x509", "-req", "-in", request, *signer, *serial, *validity, "-out", cert)
            key.chmod(0o600)
            os.replace(key, self.key(name))
            os.replace(cert, self.cert(name))


def openssl(*arguments: str | Path) -> None:
    command = ["openssl", *map(str, arguments)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=OPENSSL_S_MAX)
    except FileNotFoundError as error:
        raise CertificateError(
            "certificates are made with the program openssl, which is not here: install it"
        ) from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or ["it did not say why"]
        raise CertificateError(f"openssl {arguments[0]} failed: {said[-1]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CertificateError(f"openssl cannot be used: {error}") from error
