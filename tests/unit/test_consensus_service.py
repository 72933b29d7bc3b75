"""The consensus service has acceptors where a domain's protocol has them, and none elsewhere."""

from types import SimpleNamespace

import pytest

from ordercast.consensus.service import Consensus
from ordercast.protocols.catalogue import named, protocols
from ordercast.v1.membership_pb2 import Domain


@pytest.mark.parametrize("protocol", list(protocols()))
def test_acceptors_run_only_for_domains_whose_protocol_has_them(protocol):
    service = Consensus(SimpleNamespace(name="n1"))
    assert bool(service.machines(Domain(name="d", protocol=protocol))) == named(protocol).traits.acceptors
    assert {named(name).traits.acceptors for name in protocols()} == {True, False}
