"""What is missing is said before Spark is started."""

from pathlib import Path

import pytest

from ordercast.analytics import needs
from ordercast.analytics.errors import AnalyticsError
from ordercast.analytics.run import cause_of, host_and_port


def fake_java(folder: Path, says: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)
    return folder


def test_a_java_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, 'openjdk version "11.0.2" 2019-01-15')))
    with pytest.raises(AnalyticsError, match=r"Java 17 or later, and .*/bin/java is 11: install one"):
        needs.check_java()


def test_a_java_that_is_new_enough_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, 'openjdk version "21" 2023-09-19')))
    needs.check_java()


def test_no_java_at_all_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AnalyticsError, match="there is none: install one"):
        needs.check_java()


def test_something_else_called_java_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "coffee")))
    with pytest.raises(AnalyticsError, match="does not look like Java: coffee"):
        needs.check_java()


def test_packages_that_are_missing_are_named_with_how_to_get_them():
    with pytest.raises(
        AnalyticsError, match=r"not installed: no_such_package\..*pip install 'ordercast\[analytics\]'"
    ):
        needs.check_packages(("os", "no_such_package"))


@pytest.mark.parametrize("text", ["9464", "localhost:", "localhost:http", ":80", "localhost:99999"])
def test_an_address_is_a_host_and_a_port(text: str):
    with pytest.raises(AnalyticsError, match="HOST:PORT"):
        host_and_port(text)


def test_of_what_spark_says_the_cause_is_told():
    said = "Job aborted\n  at x\nordercast.analytics.errors.AnalyticsError: nobody there\n"
    assert cause_of(RuntimeError(said)) == "nobody there"
    python = "Job aborted: org.apache.PythonException: Traceback\n  File x\nTypeError: no float\n\n\tat y"
    assert cause_of(RuntimeError(python)) == "TypeError: no float"
    assert cause_of(RuntimeError("one\ntwo")) == "one"
