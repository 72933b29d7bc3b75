"""What can be done to a process from within its own container. tini is PID 1, so the process can be stopped."""

from tests.k8s.installation import Installation

FIND = (
    "import os, signal\n"
    "[pid] = [int(each) for each in os.listdir('/proc') if each.isdigit() and int(each) not in (1, os.getpid())"
    " and b'\\0serve\\0' in open(f'/proc/{each}/cmdline', 'rb').read()]\n"
)
STOP = FIND + "os.kill(pid, signal.SIGSTOP)"
GO_ON = FIND + "os.kill(pid, signal.SIGCONT)"
#: Processes take memory until the kernel has none left for this container. Each has little, so that it is none of
#: them that is killed for it.
EXHAUST = FIND + (
    "import time\n"
    "open(f'/proc/{pid}/oom_score_adj', 'w').write('1000')\n"
    "while True:\n"
    "    if os.fork() == 0:\n"
    "        taken = b'x' * (16 << 20)\n"
    "        time.sleep(120)\n"
    "        os._exit(0)\n"
    "    time.sleep(0.05)\n"
)
BALLAST = "/var/lib/ordercast/data/ballast"
#: To the last page.
FILL = (
    f"import os, errno\n"
    f"file = os.open({BALLAST!r}, os.O_WRONLY | os.O_CREAT)\n"
    "try:\n"
    "    while True:\n"
    "        os.write(file, b'x' * 4096)\n"
    "except OSError as error:\n"
    "    assert error.errno == errno.ENOSPC\n"
)
#: Less than a process keeps free for what it has accepted.
NEARLY_FILL = FILL + "os.truncate(file, os.fstat(file).st_size - (2 << 20))\n"
EMPTY = f"import os; os.remove({BALLAST!r})"


def run_inside(where: Installation, pod: str, script: str) -> None:
    where.exec(pod, "python", "-c", script)
