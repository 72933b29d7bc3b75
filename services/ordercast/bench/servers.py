"""A system that runs, as its client sees it, and the processes of those that are not ours."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ordercast.local.cluster import HOST, free_ports, tail


class BenchError(Exception):
    """Something could not be measured."""


@dataclass(frozen=True, slots=True)
class Servers:
    """What a client is told. It goes from process to process."""

    #: The one that clients shall use comes first.
    addresses: tuple[str, ...]
    pids: tuple[int, ...]


class PeerProcess:
    """A server that is not ours."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path) -> None:
        self.name = name
        self.log = log
        # A session of its own: Ctrl-C in the terminal is for who runs the bench.
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Such servers take settings from there, and whatever is set is not meant for these.
                env={"PATH": os.environ.get("PATH", ""), "HOME": str(log.parent)},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        if self._process.poll() is not None:
            raise BenchError(f"{self.name} ended with {self._process.returncode}: {tail(self.log)}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def addresses_of(system: str, count: int) -> tuple[dict[str, str], dict[str, str]]:
    """For clients, and for each other, by the names of so many servers that are not ours."""
    ports = free_ports(2 * count)
    names = [f"{system}-{number}" for number in range(1, count + 1)]
    addresses = [f"{HOST}:{port}" for port in ports]
    return dict(zip(names, addresses[:count], strict=True)), dict(zip(names, addresses[count:], strict=True))


def led_by(leader: str, clients: Mapping[str, str], started: Sequence[PeerProcess]) -> Servers:
    """A client of the leader saves a hop, so that is what is compared with."""
    others = [address for name, address in clients.items() if name != leader]
    return Servers((clients[leader], *others), tuple(process.pid for process in started))


@contextmanager
def processes() -> Iterator[list[PeerProcess]]:
    """Those that are put into the list are killed in the end: their data is thrown away with them."""
    started: list[PeerProcess] = []
    try:
        yield started
    finally:
        for process in started:
            process.kill()
