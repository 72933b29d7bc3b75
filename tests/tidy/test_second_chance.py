"""A test that fails once is named and forgiven; one that fails twice is neither."""

import subprocess
import sys
from pathlib import Path

from tests.tidy.rules import ROOT

FAILS_ONCE = """
from pathlib import Path

def test_fails_the_first_time():
    seen = Path(__file__).with_suffix(".seen")
    was_here = seen.exists()
    seen.touch()
    assert was_here
"""
FAILS_ALWAYS = "def test_fails_always():\n    assert False\n"
PASSES = "def test_passes():\n    pass\n"


def run(directory: Path, **modules: str) -> tuple[int, list[str]]:
    for name, text in modules.items():
        (directory / f"test_{name}.py").write_text(text)
    (directory / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, str(ROOT / "tests" / "second_chance.py")]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_a_test_that_passes_alone_is_named_in_the_last_line_and_does_not_fail_the_run(tmp_path: Path) -> None:
    code, lines = run(tmp_path, once=FAILS_ONCE, passes=PASSES)
    assert code == 0
    assert lines[-1].startswith("FLAKE, to be mended: ")
    assert "test_fails_the_first_time" in lines[-1]


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    code, lines = run(tmp_path, once=FAILS_ONCE, always=FAILS_ALWAYS)
    assert code == 1
    assert [line.split(":")[0] for line in lines[-2:]] == ["FAILED TWICE", "FLAKE, to be mended"]


def test_many_failures_are_no_bad_luck(tmp_path: Path) -> None:
    code, lines = run(tmp_path, **{f"once_{number}": FAILS_ONCE for number in range(11)})
    assert code == 1
    assert not any("Once more" in line for line in lines)
