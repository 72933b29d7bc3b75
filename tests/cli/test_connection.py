"""How commands recognise gateways: by the host that they dial, or by the name that they are told."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from ordercast.cli.connection import Connection, connection_of
from ordercast.client.errors import Unavailable
from tests.unit.certificates import Authority


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[str]:
    """A port with a certificate for another host than the one that is dialled."""
    authority = Authority("clients")
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    pair = authority.issue("gateway", dns=["orders.example"])
    server = grpc.server(ThreadPoolExecutor(1))
    credentials = grpc.ssl_server_credentials([(pair.key_pem, pair.cert_pem)])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


def connection(gateway: str, folder: Path, timeout_s: float, server_name: str | None) -> Connection:
    return connection_of(gateway, timeout_s, folder / "ca.pem", None, None, server_name)


def test_a_gateway_is_recognised_by_the_name_that_is_given(gateway: str, tmp_path: Path):
    with connection(gateway, tmp_path, 30, "orders.example").channel():
        pass


@pytest.mark.parametrize("name", [None, "another.example"])
def test_a_gateway_of_another_name_is_not_talked_to(gateway: str, tmp_path: Path, name: str | None):
    with pytest.raises(Unavailable), connection(gateway, tmp_path, 1, name).channel():
        pass
