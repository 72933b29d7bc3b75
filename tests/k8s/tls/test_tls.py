"""Everything encrypted, with certificates from a Secret."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import ordercast
from deploy.kubernetes.rendering import Refused
from ordercast.client.errors import OrdercastError
from tests.k8s.installation import PREFIX, RELEASE, Installation, installed
from tests.k8s.kube import kubectl
from tests.k8s.kube_status import wait_for_status
from tests.unit.certificates import Authority

NAMESPACE = "ordercast-tls"
SECRET = "ordercast-certificates"
SETTINGS = ("profile=compact", "tls.enabled=true", f"tls.secretName={SECRET}")
SERVICE = f"{PREFIX}-gateway"
NAMES = [
    *(f"{PREFIX}-node-{number}" for number in range(3)),
    f"{PREFIX}-telemetry",
    SERVICE,
    f"{SERVICE}.{NAMESPACE}",
    f"{SERVICE}.{NAMESPACE}.svc",
    f"{SERVICE}.{NAMESPACE}.svc.cluster.local",
    "localhost",
]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for everybody, which names all of them; and its authority."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority("ordercast")
    pair = authority.issue_peer("", dns=NAMES)
    for file, content in (("ca.crt", authority.pem), ("tls.crt", pair.cert_pem), ("tls.key", pair.key_pem)):
        (folder / file).write_bytes(content)
    return folder


def make_secret(folder: Path) -> None:
    files = [f"--from-file={folder / name}" for name in ("ca.crt", "tls.crt", "tls.key")]
    kubectl("--namespace", NAMESPACE, "create", "secret", "generic", SECRET, *files)


@pytest.fixture(scope="module")
def encrypted(certificates: Path) -> Iterator[Installation]:
    with installed(NAMESPACE, *SETTINGS, before=lambda: refused_then_made(certificates)) as made:
        yield made


def refused_then_made(certificates: Path) -> None:
    """Before there is a Secret, the chart says so, and nothing is installed."""
    with pytest.raises(Refused, match="has no such Secret: create it first"):
        Installation(NAMESPACE, list(SETTINGS)).install()
    make_secret(certificates)


def test_the_release_proves_itself(encrypted: Installation):
    assert "All replicas agree" in encrypted.helm("test", RELEASE, "--logs", "--timeout", "3m")


def test_clients_need_a_certificate(encrypted: Installation, certificates: Path):
    (address,) = encrypted.gateways
    own = ordercast.TLS(
        certificates / "ca.crt", certificates / "tls.crt", certificates / "tls.key", server_name=SERVICE
    )
    with ordercast.connect_sync(address, tls=own) as connection:
        connection.create_group("encrypted", replicas=3)
        assert connection.publish(b"hidden", to=["encrypted"]).offsets == {"encrypted": 0}
    without = ordercast.TLS(certificates / "ca.crt", server_name=SERVICE)
    for tls in (None, without):
        with (
            ordercast.connect_sync(address, tls=tls, timeout=5) as connection,
            pytest.raises(OrdercastError),
        ):
            connection.nodes()


def test_kube_status_goes_through_the_api_server(encrypted: Installation, certificates: Path):
    files = {"ca": "ca.crt", "cert": "tls.crt", "cert-key": "tls.key"}
    options = [f"--{option}={certificates / file}" for option, file in files.items()]
    wait_for_status(encrypted, *options)
