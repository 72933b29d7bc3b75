"""Which gateway is asked next: in turn, but those that hang come last. Without I/O."""

from collections.abc import Sequence

#: A gateway that fell silent is passed over for so long.
AVOID_S = 30.0


class Addresses:
    """The gateways that the application named.

    >>> addresses = Addresses(["a:1", "b:1", "c:1"])
    >>> addresses.avoid("b:1", now=0.0)
    >>> addresses.choose(1, now=1.0), addresses.choose(3, now=1.0), addresses.choose(1, now=31.0)
    ('c:1', 'a:1', 'b:1')
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = list(addresses)
        self._avoided: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def choose(self, wish: int, now: float) -> str:
        """The one at this place, counted round and round, or the first behind it that does not hang."""
        places = [(wish + number) % len(self._addresses) for number in range(len(self._addresses))]
        turn = [self._addresses[place] for place in places]
        return next((address for address in turn if self._avoided.get(address, now) <= now), turn[0])

    def avoid(self, address: str, now: float) -> None:
        """It fell silent."""
        self._avoided[address] = now + AVOID_S
