"""A ledger whose accounts are spread over shards. A transfer is one message to the shards of both accounts.

Each shard is a group, and its log is all there is: whoever reads it from the beginning has the balances. Since
both shards see a transfer, and all shards see all transfers in one order, no money is ever on its way.
"""

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Transfer:
    source: str
    target: str
    cents: int

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def decode(payload: bytes) -> "Transfer":
        return Transfer(**json.loads(payload))


def shard_of(account: str, shards: Sequence[str]) -> str:
    """The same for everybody, as long as nobody changes the shards."""
    return shards[zlib.crc32(account.encode()) % len(shards)]


def shards_of(transfer: Transfer, shards: Sequence[str]) -> list[str]:
    """Where a transfer has to be published: one shard, or two."""
    return sorted({shard_of(transfer.source, shards), shard_of(transfer.target, shards)})


class Shard:
    """The accounts of one shard, as its log has them so far."""

    def __init__(self, name: str, shards: Sequence[str]) -> None:
        self.name = name
        self.shards = shards
        self.balances: dict[str, int] = {}
        #: A replica that is read a second time must go through the same states: this tells them apart.
        self.fingerprint = 0

    def apply(self, payload: bytes) -> None:
        transfer = Transfer.decode(payload)
        self._add(transfer.source, -transfer.cents)
        self._add(transfer.target, transfer.cents)
        self.fingerprint = zlib.crc32(payload, self.fingerprint)

    def _add(self, account: str, cents: int) -> None:
        if shard_of(account, self.shards) == self.name:
            self.balances[account] = self.balances.get(account, 0) + cents


def total(shards: Iterable[Shard]) -> int:
    """What one account gained another lost: always zero."""
    return sum(balance for shard in shards for balance in shard.balances.values())
