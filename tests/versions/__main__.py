"""`make test-versions`: the package with the lowest and with the newest versions that its ranges allow.

Each has two environments in build/versions: the client alone, which is looked at, and a node with everything that
goes with it, in which tests of the client, of the commands and of a cluster run.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.tidy.rules import ROOT

UV = Path(sys.executable).with_name("uv")
ENVIRONMENTS = ROOT / "build" / "versions"
RESOLUTIONS = ("lowest-direct", "highest")
EXTRAS = "server,telemetry,kafka,k8s"
#: As they are locked: they are not what is tried.
TOOLS = ("cryptography", "hypothesis", "pytest", "pytest-timeout", "pytest-xdist", "pyyaml")
CLIENT_BYTES_MAX = 40_000_000
TESTS = (
    "tests/unit/test_client_aio.py",
    "tests/unit/test_client_session.py",
    "tests/unit/test_client_subscription.py",
    "tests/unit/test_client_sync.py",
    "tests/unit/test_storage.py",
    "tests/unit/test_settings.py",
    "tests/telemetry/test_receiver.py",
    "tests/cli/cluster_commands",
    "tests/cli/test_extras.py",
    "tests/cluster/test_documents.py",
    "tests/cluster/test_ledger.py",
)


def main() -> None:
    shutil.rmtree(ENVIRONMENTS, ignore_errors=True)
    for resolution in RESOLUTIONS:
        try_client(resolution)
        try_node(resolution)


def try_client(resolution: str) -> None:
    python = make(f"{resolution}-client", resolution, ".")
    packages = next(python.parents[1].glob("lib/*/site-packages"))
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file() and path.suffix != ".pyc")
    say(f"{resolution}: the client takes {size / 1e6:.1f} MB")
    assert size < CLIENT_BYTES_MAX
    run(python, "-c", "import ordercast; print(ordercast.__version__, ordercast.connect, ordercast.connect_sync)")
    done = subprocess.run([python.with_name("ordercast"), "--help"], capture_output=True, text=True)
    assert (done.returncode, "ordercast[cli]" in done.stderr) == (2, True), done.stderr


def try_node(resolution: str) -> None:
    python = make(f"{resolution}-node", resolution, f"-e.[{EXTRAS}]")
    # What was chosen stays, whatever the tools would rather have.
    kept = python.parents[1] / "kept.txt"
    kept.write_text(run(UV, "pip", "freeze", "--exclude-editable", "--python", python))
    locked = ROOT / "requirements" / "dev.lock"
    tools = [line.split()[0] for line in locked.read_text().splitlines() if line.partition("==")[0] in TOOLS]
    run(UV, "pip", "install", "--quiet", "--python", python, "--constraint", kept, *tools)
    say(kept.read_text())
    subprocess.run([python, "-m", "pytest", "-n0", *TESTS], cwd=ROOT, check=True)


def make(name: str, resolution: str, what: str) -> Path:
    python = ENVIRONMENTS / name / "bin" / "python"
    run(UV, "venv", "--quiet", "--python", sys.executable, python.parents[1])
    run(UV, "pip", "install", "--quiet", "--python", python, "--resolution", resolution, what)
    return python


def run(*command: str | Path) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
