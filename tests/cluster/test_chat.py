"""The chat over three rooms: answers never come before questions to whoever reads causally, while nodes die."""

import re
import subprocess
import sys
from pathlib import Path

CHAT = Path(__file__).resolve().parents[2] / "examples" / "chat" / "run.py"
QUESTIONS = 60
#: Each holds the rooms up until views without it are agreed on. Both have replicas of several rooms.
CRASHES = 2
#: Questions, two answers to each, a remark on each answer, a word in each room, and the last word.
POSTS = 5 * QUESTIONS + 3 + 1


def test_no_answer_comes_before_its_question_while_nodes_die() -> None:
    command = [sys.executable, str(CHAT), "--questions", str(QUESTIONS), "--crashes", str(CRASHES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("killing node-") == CRASHES
    found = re.findall(r"(.*): (\d+) of (\d+) posts shown, (\d+) of (\d+) answers early", done.stdout)
    (_, *by_room), (_, *causally) = found
    assert by_room[:2] == causally[:2] == [str(POSTS), str(POSTS)]
    assert int(by_room[2]) >= QUESTIONS
    assert int(causally[2]) == 0
