"""Addresses, and the recursive subdivision that they are [apbcast 3.1, Definitions 1 and 2].

An address has L components, from the top down: (p_L, ..., p_1). All processes that share the first L - k of
them are a subgroup of level k. So a process's own subgroup of level 1 is that of its immediate neighbours, and
level L is everybody.
"""

from collections.abc import Sequence

Address = tuple[int, ...]

LEVELS_MAX = 8
COMPONENT_MAX = 2**20


def check_address(address: Sequence[int], levels: int) -> Address:
    """Raises a ValueError that can be shown to users."""
    if len(address) != levels:
        raise ValueError(f"an address has {levels} components, not {len(address)}")
    if any(not 0 <= component < COMPONENT_MAX for component in address):
        raise ValueError(f"the components of an address are from 0 to {COMPONENT_MAX - 1}")
    return tuple(address)


def subgroup(address: Address, level: int) -> Address:
    """The prefix that its subgroup of that level shares."""
    return address[: len(address) - level]


def component(address: Address, level: int) -> int:
    """p_k: which part of its subgroup of level k the process is in [apbcast 4.1, `infix`]."""
    return address[len(address) - level]


def common_level(one: Address, other: Address) -> int:
    """The lowest level whose subgroup they share; 0 if they are the same [apbcast Fig.2 l.8]."""
    shared = 0
    while shared < len(one) and one[shared] == other[shared]:
        shared += 1
    return len(one) - shared
