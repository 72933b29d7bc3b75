"""The examples in the SDK's docstrings, run as they are against a live cluster."""

import doctest
import importlib
import pkgutil

import pytest

import ordercast.client
from ordercast.local.cluster import LocalCluster

#: Where the examples find a gateway.
ADDRESS_IN_EXAMPLES = "127.0.0.1:7400"


def examples() -> list[doctest.DocTest]:
    found = []
    for info in pkgutil.iter_modules(ordercast.client.__path__, "ordercast.client."):
        for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(info.name)):
            if test.examples:
                found.append(test)
    return found


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_an_example_does_what_it_shows(cluster: LocalCluster, example: doctest.DocTest) -> None:
    for step in example.examples:
        step.source = step.source.replace(ADDRESS_IN_EXAMPLES, cluster.gateways[0])
    said: list[str] = []
    results = doctest.DocTestRunner().run(example, out=said.append)
    assert results.failed == 0, "".join(said)


def test_there_are_examples_of_publishing_and_subscribing_in_both_flavours() -> None:
    names = [example.name.removeprefix("ordercast.client.") for example in examples()]
    for name in ("aio.connect", "aio.Connection.subscribe", "sync.connect_sync", "sync.SyncConnection.subscribe"):
        assert name in names
