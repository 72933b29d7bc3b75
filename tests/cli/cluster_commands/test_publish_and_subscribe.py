"""What is published, from where, and how what is read is shown."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ordercast.local.cluster import wait_until
from tests.cli.cluster_commands.commands import document, run, text, unwrapped

pytestmark = pytest.mark.usefixtures("gateway")


def lines_of(*args: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text("subscribe", *args, "--json").splitlines()]


def test_a_message_to_two_groups_has_one_place_in_the_order(group: str) -> None:
    document("group", "create", "other")
    receipt = document("publish", f"{group},other", "hello, both", "--key", "k", "--header", "colour=blue")
    assert receipt["offsets"] == {group: 0, "other": 0}
    assert receipt["duplicate"] is False
    found = [lines_of(name, "--until-end") for name in (group, "other")]
    for name, (delivery,) in zip((group, "other"), found, strict=True):
        assert datetime.fromisoformat(delivery.pop("stored_at")) <= datetime.now(UTC)
        assert delivery == {
            "group": name,
            "offset": 0,
            "order_key": receipt["order_key"],
            "message_id": receipt["message_id"],
            "payload": "hello, both",
            "key": "k",
            "headers": {"colour": "blue"},
        }
    assert f"{group} at 1, other at 1" in text("publish", f"other,{group}", "again", "--unordered")


def test_lines_become_messages_in_their_order(group: str) -> None:
    numbers = [str(number) for number in range(300)]
    receipts = document("publish", group, "--lines", stdin="\n".join(numbers))
    assert [receipt["offsets"][group] for receipt in receipts] == list(range(300))
    assert text("subscribe", group, "--until-end", "--payload-only").split() == numbers
    assert len(text("publish", group, "--lines", stdin="a\r\n\n").splitlines()) == 2
    assert [delivery["payload"] for delivery in lines_of(group, "--from", "300", "--until-end")] == ["a", ""]
    assert document("publish", group, "--lines", stdin="") == []


def test_a_file_is_published_as_it_is(group: str, tmp_path: Path) -> None:
    picture = tmp_path / "picture"
    picture.write_bytes(b"\xff\x00\n\x1b[31m")
    assert document("publish", group, "--file", str(picture))["offsets"] == {group: 0}
    assert document("publish", group, "--file", "-", stdin=b"from stdin")["offsets"] == {group: 1}
    assert lines_of(group, "--until-end")[0]["payload_base64"] == "/wAKG1szMW0="
    shown = text("subscribe", group, "--from", "earliest", "--limit", "2")
    assert shown.splitlines() == ["       0  \\xff\\x00\\n\\x1b[31m", "       1  from stdin"]


@pytest.mark.parametrize("args", [(), ("-",), ("--file", "-")])
def test_stdin_is_one_message_as_it_is(group: str, args: tuple[str, ...]) -> None:
    document("publish", group, *args, stdin=b"two\nlines\n")
    assert [delivery["payload"] for delivery in lines_of(group, "--until-end")] == ["two\nlines\n"]


@pytest.mark.parametrize("args", [(), ("-",), ("--file", "-")])
def test_an_empty_stdin_is_no_message(group: str, args: tuple[str, ...]) -> None:
    result = run("publish", group, *args, stdin="")
    assert result.exit_code == 2
    assert (
        f"stdin is empty, and nothing was published. A message without content is `ordercast publish {group} ''`"
        in (unwrapped(result.stderr))
    )
    document("publish", group, "")
    assert [delivery["payload"] for delivery in lines_of(group, "--until-end")] == [""]


def test_at_a_terminal_a_publish_without_a_message_shows_how_it_is_given() -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "ordercast.cli.main", "publish", "a,b"]
    try:
        done = subprocess.run(command, stdin=theirs, capture_output=True, text=True)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (done.returncode, done.stdout) == (2, "")
    for example in ("ordercast publish a,b 'hello'", "echo hello | ordercast publish a,b", "--lines"):
        assert example in unwrapped(done.stderr)


def test_a_named_producer_goes_on(group: str) -> None:
    first, second = (document("publish", group, text_, "--producer", "billing") for text_ in ("one", "two"))
    assert first["message_id"].startswith("billing-")
    assert first["message_id"] != second["message_id"]


def test_acknowledgements_move_the_cursor(group: str) -> None:
    document("publish", group, "--lines", stdin="a\nb\nc\n")
    first = lines_of(group, "--cursor", "reader", "--from", "earliest", "--ack", "--limit", "2")
    assert [delivery["payload"] for delivery in first] == ["a", "b"]
    (cursor,) = document("cursor", "list", group)
    assert (cursor["offset"], cursor["behind"]) == (2, 1)
    assert cursor["oldest_s"] >= 0
    assert "oldest" in text("cursor", "list", group)
    assert [delivery["payload"] for delivery in lines_of(group, "--cursor", "reader", "--until-end")] == ["c"]
    assert document("cursor", "list", group)[0]["offset"] == 2


def test_a_new_cursor_begins_where_the_help_says(group: str) -> None:
    document("publish", group, "--lines", stdin="a\nb\n")
    found = lines_of(group, "--cursor", "whole", "--until-end", "--ack")
    assert [delivery["payload"] for delivery in found] == ["a", "b"]
    assert document("cursor", "list", group, "whole")[0]["offset"] == 2
    command = [sys.executable, "-m", "ordercast.cli.main", "subscribe", group, "--cursor", "news", "--limit", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        wait_until("the cursor exists", lambda: run("cursor", "list", group, "news").exit_code == 0, 60.0)
        text("publish", group, "c")
        assert process.communicate(timeout=60)[0].split() == ["2", "c"]


def test_messages_are_read_from_a_time_and_the_last_so_many(group: str) -> None:
    document("publish", group, "--lines", stdin="a\nb\nc\n")
    for start in ("1h", "2026-01-01", "2026-01-01T00:00+00:00"):
        assert text("subscribe", group, "--from", start, "--until-end", "--payload-only").split() == [
            "a",
            "b",
            "c",
        ]
    assert text("subscribe", group, "--last", "2", "--until-end", "--payload-only").split() == ["b", "c"]
    assert document("cursor", "set", group, "c", "1h")["offset"] == 0


def test_messages_are_printed_in_a_form_of_the_users_own(group: str) -> None:
    document("publish", group, "one", "--key", "k", "--header", "colour=blue", "--header", "size=1")
    document("publish", group, "--file", "-", stdin=b"\xff\n")
    whole = ("subscribe", group, "--until-end")
    assert text(*whole).splitlines()[0] == "       0  k:  one  [colour=blue, size=1]"
    form = r"{offset:>3}\t{key}\t{headers[colour]}|{headers}\t{{{payload}}}"
    printed = run(*whole, "--format", form, "--print0").stdout_bytes
    assert printed == b"  0\tk\tblue|colour=blue size=1\t{one}\0  1\t\t|\t{\xff\n}\0"
    assert run(*whole, "--payload-only", "--print0").stdout_bytes == b"one\0\xff\n\0"
    described = lines_of(group, "--until-end", "--limit", "1")[0]
    form = "{group} {message_id} {order_key} {stored_at} {sequence}"
    names = ("group", "message_id", "order_key", "stored_at")
    assert text(*whole, "--format", form, "--limit", "1").split()[:4] == [described[name] for name in names]


def test_live_delivery_says_which_protocol_has_it(group: str) -> None:
    result = run("subscribe", group, "--live")
    assert result.exit_code == 5
    assert "ordered by scalatom" in result.stderr
    assert "protocol isis" in result.stderr


def test_several_groups_are_read_as_one_stream_up_to_a_cut(group: str) -> None:
    document("group", "create", "beside")
    both = document("publish", f"{group},beside", "both")
    document("publish", "beside", "alone")
    cut = document("cut", f"{group},beside")["cut"]
    document("publish", group, "later")
    found = lines_of(f"{group},beside", "--from", "earliest", "--until-now")
    assert [(d["payload"], d["offsets"]) for d in found] == [
        ("both", {"beside": 0, group: 0}),
        ("alone", {"beside": 1}),
        ("later", {group: 1}),
    ]
    assert found[0]["message_id"] == both["message_id"]
    assert [d["payload"] for d in lines_of(f"{group},beside", "--from", cut, "--until-now")] == ["later"]
    matching = lines_of("--domain", "default", "--groups", "besid?", "--from", "earliest", "--until-now")
    assert [d["payload"] for d in matching] == ["both", "alone"]
    refused = run("subscribe", f"{group},beside", "--last", "3")
    assert "one group" in " ".join(refused.stderr.split())


def test_an_unknown_field_is_told_what_there_is() -> None:
    result = run("subscribe", "a", "--format", "{offset} {colour}")
    assert result.exit_code == 2
    assert "{colour}" in result.stderr
    assert "{message_id}" in result.stderr


def test_ctrl_c_ends_a_subscription_with_exit_code_0(group: str) -> None:
    text("publish", group, "first")
    command = [sys.executable, "-m", "ordercast.cli.main", "subscribe", group, "--from", "earliest"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith("first\n")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")


def test_a_reader_that_goes_away_is_no_failure(group: str) -> None:
    text("publish", group, "--lines", stdin="\n".join("x" * 1000 for _ in range(200)))
    command = (
        f"{sys.executable} -m ordercast.cli.main subscribe {group} --until-end | head -1; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_a_publish_that_fails_prints_no_receipt() -> None:
    result = run("publish", "nowhere", "lost", "--json")
    assert (result.exit_code, result.stdout) == (3, "")
    result = run("publish", "nowhere", "--lines", "--json", stdin="lost\nlost\n")
    assert (result.exit_code, json.loads(result.stdout)) == (3, [])
