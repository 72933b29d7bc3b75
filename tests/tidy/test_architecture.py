"""Layers, purity, the order of sets, and size: each rule on our code, and on a snippet that breaks it."""

import pytest

from tests.tidy import rules


def test_there_is_code_to_check():
    assert "ordercast.__init__" in rules.modules()
    assert rules.pure_modules(rules.modules())


def test_pure_code_does_no_io_and_has_no_clock_and_no_chance():
    sources = rules.modules()
    errors = [e for module in rules.pure_modules(sources) for e in rules.purity_errors(sources[module], module)]
    assert errors == []


def test_no_component_imports_what_lies_above_it():
    assert [e for module, source in rules.modules().items() for e in rules.layering_errors(source, module)] == []


def test_pure_code_never_takes_the_order_of_a_set():
    sources = rules.modules()
    errors = [e for m in rules.pure_modules(sources) for e in rules.set_order_errors(sources[m], m)]
    assert errors == []


def test_files_and_functions_stay_small():
    assert [e for module, source in rules.modules().items() for e in rules.size_errors(source, module)] == []


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio",
        "import time",
        "import os.path",
        "import collections, random",
        "from datetime import datetime",
        "from logging import getLogger as log",
        "import google.auth",
        "import grpc",
        "from ordercast.runtime.driver import clock",
        "import ordercast.sim.network",
        "from ... import sim",
        "def f():\n    import socket",
        "open('state')",
        "print(1)",
        "def f(x):\n    return id(x)",
        "order = hash('a')",
        "sorted(names, key=hash)",
        "min(objects, key=id)",
        "__import__('time')",
    ],
)
def test_impure_code_is_caught(source):
    assert len(rules.purity_errors(source, "ordercast.protocols.paxos.machine")) == 1


@pytest.mark.parametrize(
    "source",
    [
        "from __future__ import annotations",
        "import collections.abc, heapq",
        "from google.protobuf.message import Message",
        "from ordercast.v1.common_pb2 import Envelope",
        "from ordercast.core import ids",
        "from . import acceptor",
        "from ..paxos.acceptor import Acceptor",
        "self.open()",
        "message.id",
        "class A:\n    def hash(self): ...",
    ],
)
def test_pure_code_is_let_through(source):
    assert rules.purity_errors(source, "ordercast.protocols.scalatom.machine") == []


def test_whatever_a_machine_imports_from_its_own_service_has_to_be_pure():
    sources = {
        "ordercast.__init__": "",
        "ordercast.gateway.__init__": "",
        "ordercast.gateway.machine": "from ordercast.gateway.batch import Batch",
        "ordercast.gateway.batch": "from . import limits",
        "ordercast.gateway.limits": "",
        "ordercast.gateway.server": "import asyncio",
        "ordercast.core.ids": "",
        "ordercast.sim.network": "",
    }
    assert rules.pure_modules(sources) == [
        "ordercast.core.ids",
        "ordercast.gateway.__init__",
        "ordercast.gateway.batch",
        "ordercast.gateway.limits",
        "ordercast.gateway.machine",
    ]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ordercast.core.ids", "from ordercast.protocols import paxos"),
        ("ordercast.core.ids", "from ..runtime import channels"),
        ("ordercast.core.ids", "import ordercast"),
        ("ordercast.core.__init__", "from ..client import connect"),
        ("ordercast.protocols.paxos.machine", "import ordercast.consensus.machine"),
        ("ordercast.gateway.server", "from ordercast import sequencer"),
        ("ordercast.telemetry.__main__", "def main():\n    from ordercast.analytics.job import run"),
        ("ordercast.runtime.channels", "from ordercast.gateway.machine import Gateway"),
        ("ordercast.client.aio", "from ordercast.runtime.transport import tls"),
        ("ordercast.client.aio", "from ordercast.protocols.paxos import machine"),
        ("ordercast.gateway.server", "from ordercast.sim import network"),
        ("ordercast.runtime.driver.clock", "import ordercast.sim.clock"),
        ("ordercast.__init__", "from . import sim"),
    ],
)
def test_an_import_from_above_is_caught(module, source):
    assert len(rules.layering_errors(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ordercast.core.ids", "from .errors import RemoteProtocolError"),
        ("ordercast.core.machine", "from ordercast.v1 import common_pb2"),
        ("ordercast.protocols.scalatom.machine", "from ordercast.protocols.paxos import machine"),
        ("ordercast.gateway.server", "from ordercast.runtime import channels\nfrom .machine import Gateway"),
        ("ordercast.client.aio", "import grpc\nfrom ordercast.core.errors import RemoteProtocolError"),
        ("ordercast.sim.world", "from ordercast.gateway.machine import Gateway"),
        ("ordercast.cli.main", "from ordercast.sim import world"),
        ("ordercast.gateway.server", "import ordercast_plugins"),
    ],
)
def test_an_import_from_below_is_let_through(module, source):
    assert rules.layering_errors(source, module) == []


@pytest.mark.parametrize(
    "source",
    [
        "for x in {1, 2}: ...",
        "for x in set(names): ...",
        "for x in frozenset(names): ...",
        "for x in {n.group for n in nodes}: ...",
        "for x in set(a) | b: ...",
        "for x in a.keys() & b.keys(): ...",
        "for x in set(a).union(b): ...",
        "[f(x) for x in set(names)]",
        "{x: 1 for x in {'a', 'b'}}",
        "sum(x for x in set(weights))",
        "list(set(names))",
        "for i, x in enumerate(set(names)): ...",
        "','.join({'a', 'b'})",
        "dict.fromkeys(set(names))",
        "effects = [*set(effects)]",
    ],
)
def test_taking_the_order_of_a_set_is_caught(source):
    assert len(rules.set_order_errors(source, "ordercast.core.quorums")) == 1


@pytest.mark.parametrize(
    "source",
    [
        "for x in sorted({1, 2}): ...",
        "for x in sorted(set(a) | set(b)): ...",
        "for x in d.keys(): ...",
        "for x in a - b: ...",
        "sorted(x for x in set(names))",
        "any(x > 1 for x in set(weights))",
        "{x.group for x in set(nodes)}",
        "sorted(list(set(names)))",
        "{*set(a), *set(b)}",
        "x in {1, 2}",
    ],
)
def test_a_sorted_set_is_let_through(source):
    assert rules.set_order_errors(source, "ordercast.core.quorums") == []


def test_a_file_that_is_too_long_is_caught():
    assert rules.size_errors("x = 1\n" * 700, "ordercast.core.ids") == []
    assert len(rules.size_errors("x = 1\n" * 701, "ordercast.core.ids")) == 1


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_a_function_that_is_too_long_is_caught(keyword):
    head = f"class A:\n    {keyword} f(self):\n"
    assert rules.size_errors(head + "        x = 1\n" * 69, "ordercast.core.ids") == []
    assert len(rules.size_errors(head + "        x = 1\n" * 70, "ordercast.core.ids")) == 1
