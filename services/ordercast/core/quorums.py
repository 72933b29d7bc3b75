"""Majorities, and qualified majorities of several groups.

A qualified majority of a set of groups holds a majority of every group in it. Two
qualified majorities of overlapping sets of groups meet in every group they share.
"""

from collections.abc import Collection, Container, Iterable


def majority(size: int) -> int:
    return size // 2 + 1


def has_majority(members: Collection[str], voters: Container[str]) -> bool:
    return sum(1 for member in members if member in voters) >= majority(len(members))


def qualified_majority(groups: Iterable[Collection[str]], voters: Container[str]) -> bool:
    """Whether the voters hold a majority of each group. A process may vote in several groups at once."""
    return all(has_majority(members, voters) for members in groups)
