"""ELECT: who represents a subgroup one level above [apbcast Fig.2 l.38-44, Definition 3].

Deterministic, out of the representatives of the parts: first the first one of each part, by the parts' order,
then the second ones, until there are R or nobody is left. (The figure takes R + 1, loses the part that somebody
is from, and does not end with fewer than R candidates.)
"""

from collections.abc import Mapping, Sequence

from ordercast.protocols.apbcast.address import Address


def elect(parts: Mapping[int, Sequence[Address]], representatives: int) -> list[Address]:
    """`parts`: by component, who represents that part. The elected, by address."""
    candidates = [
        (rank, infix, address)
        for infix, addresses in parts.items()
        for rank, address in enumerate(sorted(addresses))
    ]
    return sorted(address for _, _, address in sorted(candidates)[:representatives])
