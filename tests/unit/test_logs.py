"""What a process writes to its log: lines of JSON, or for people, bounded and without payloads."""

import io
import json
import logging

import pytest
import structlog

from ordercast.runtime.process import logs
from ordercast.runtime.process.settings import LoggingSettings
from ordercast.v1 import faults_pb2

SECRET = "the payload of a client"


@pytest.fixture
def written():
    """configure(settings) -> the stream that logs go to; everything is put back afterwards."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()

    def configure(**settings):
        logs.configure("s1", LoggingSettings(**settings), stream)
        return stream

    yield configure
    root.handlers[:], level = before
    root.setLevel(level)
    for name in ("asyncio", "grpc"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    structlog.reset_defaults()


def test_each_line_is_json_with_the_name_of_the_process(written):
    stream = written()
    structlog.get_logger("mesh").info("a link is up", peer="s2")
    logging.getLogger("grpc").warning("from %s", "grpc")
    logging.getLogger("grpc").info("of no interest", exc_info=False)
    first, second, third = map(json.loads, stream.getvalue().splitlines())
    assert (first["event"], first["peer"], first["level"], first["logger"]) == (
        "a link is up",
        "s2",
        "info",
        "mesh",
    )
    assert (second["event"], second["level"], second["logger"]) == ("from grpc", "warning", "grpc")
    assert {line["process"] for line in (first, second, third)} == {"s1"}
    assert first["timestamp"].endswith("Z")


def test_what_is_below_the_level_is_not_written(written):
    stream = written(level="warning")
    structlog.get_logger("mesh").info("quiet")
    logging.getLogger("grpc").info("quiet")
    structlog.get_logger("mesh").warning("loud")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["loud"]


def test_the_steps_of_grpc_are_not_written_even_for_debugging(written):
    stream = written(level="debug")
    logging.getLogger("grpc._cython").debug("a step")
    structlog.get_logger("mesh").debug("ours")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["ours"]


def test_people_can_read_the_console_format(written):
    stream = written(format="console")
    structlog.get_logger("mesh").info("a link is up", peer="s2")
    assert "a link is up" in stream.getvalue()
    assert "peer=s2" in stream.getvalue()
    assert "process=s1" in stream.getvalue()


@pytest.mark.parametrize("format_", ["json", "console"])
def test_payloads_are_not_logged(written, format_):
    stream = written(format=format_)
    payload = SECRET.encode()
    request = faults_pb2.InjectRequest(deaf_to=[SECRET])
    log = structlog.get_logger("mesh")
    log.info(
        "got", body=payload, request=request, parts=[payload, {"body": memoryview(payload)}], deep=[[[[payload]]]]
    )
    try:
        unused = payload.decode()
        raise ValueError(len(unused))
    except ValueError:
        log.exception("failed")
    assert SECRET not in stream.getvalue()
    assert f"<{len(payload)} bytes>" in stream.getvalue()
    assert "<InjectRequest>" in stream.getvalue()
    assert "ValueError" in stream.getvalue()


def test_a_log_line_is_bounded(written):
    stream = written()
    structlog.get_logger("mesh").info("long", text="x" * 1_000_000, many=list(range(1_000_000)))
    assert len(stream.getvalue()) < 20_000
