"""The example that the documentation leads with: a ledger over three shards that loses nodes while it runs."""

import subprocess
import sys
from pathlib import Path

LEDGER = Path(__file__).resolve().parents[2] / "examples" / "ledger" / "run.py"


def test_no_money_is_lost_while_nodes_die() -> None:
    command = [sys.executable, str(LEDGER), "--clients", "2", "--transfers", "100"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200 transfers have their receipts" in done.stdout
    assert "the balances of all accounts add up to 0" in done.stdout
    assert done.stdout.count("replicas agree") == 3
