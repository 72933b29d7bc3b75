"""Runs pytest, and each test that failed once more, alone: `python -m tests.second_chance [pytest's arguments]`.

A test that passes alone is a flake. It does not fail the run, because one unlucky moment of a busy machine says
nothing about the change that is tested; but the last lines of the run name it, because somebody has to mend it. A
test that fails twice fails the run.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

#: Pytest's exit code if tests ran and some of them failed. Others (interrupted, nothing to run) are passed on.
TESTS_FAILED = 1
#: So many failures are no bad luck, and running each of them alone would take long.
FAILURES_MAX = 10

#: Where `.ci/run` finds them, for its own last lines.
NOTED = Path(".flakes")

#: No test runs beside it, and no marker keeps it from being run.
ALONE = ("-n0", "-m", "")


def main(arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="second-chance-") as cache:
        code = pytest(cache, *arguments)
        failures = failed(Path(cache)) if code == TESTS_FAILED else []
        if not failures or len(failures) > FAILURES_MAX:
            return code
        options = [argument for argument in arguments if argument.startswith("--override-ini=")]
        print(f"\n== Once more, alone: {len(failures)} that failed ==", flush=True)
        again = [test for test in failures if pytest(cache, *options, *ALONE, test)]
    flakes = [f"FLAKE, to be mended: {test} failed, and passed alone" for test in failures if test not in again]
    with NOTED.open("a") as noted:
        noted.writelines(f"{flake}\n" for flake in flakes)
    print(*(f"FAILED TWICE: {test}" for test in again), *flakes, sep="\n")
    return TESTS_FAILED if again else 0


def pytest(cache: str, *arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]).returncode


def failed(cache: Path) -> list[str]:
    """What pytest noted for its option `--last-failed`."""
    noted = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(noted.read_text())) if noted.exists() else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
