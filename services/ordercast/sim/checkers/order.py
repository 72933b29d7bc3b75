"""Order over all groups, checked at the end of a run: acyclic, FIFO, causal."""

from ordercast.sim.board import Board, MessageKey, name_of
from ordercast.sim.checkers.logs import GroupLog
from ordercast.sim.checkers.violation import Violation


def check_acyclic(groups: dict[str, GroupLog], board: Board) -> None:
    """One order for everything: what a group delivers first comes first, and so does what a sender had seen."""
    after: dict[MessageKey, dict[MessageKey, str]] = {}
    before: dict[MessageKey, int] = {}

    def edge(first: MessageKey, second: MessageKey, why: str) -> None:
        if second not in after.setdefault(first, {}):
            after[first][second] = why
            before[second] = before.get(second, 0) + 1
        before.setdefault(first, 0)

    for name, group in groups.items():
        for first, second in zip(group.messages, group.messages[1:], strict=False):
            edge(first, second, name)
    delivered = {key for group in groups.values() for key in group.messages}
    for key, sent in board.sent.items():
        for seen in sent.after:
            if key in delivered and seen in delivered:
                edge(seen, key, "causality")
    free = [key for key, count in before.items() if count == 0]
    done = 0
    while free:
        key = free.pop()
        done += 1
        for follower in after.get(key, {}):
            before[follower] -= 1
            if before[follower] == 0:
                free.append(follower)
    if done < len(before):
        raise Violation("order", "cycle: " + _explain_cycle({k for k, n in before.items() if n}, after))


def _explain_cycle(inside: set[MessageKey], after: dict[MessageKey, dict[MessageKey, str]]) -> str:
    """The shortest cycle among what could not be sorted."""
    best: list[tuple[MessageKey, str]] | None = None
    for start in sorted(inside):
        paths: list[list[tuple[MessageKey, str]]] = [[(start, "")]]
        seen = {start}
        while paths and (best is None or len(paths[0]) < len(best)):
            path = paths.pop(0)
            for follower, why in sorted(after.get(path[-1][0], {}).items()):
                if follower == start:
                    best = [*path, (start, why)]
                    paths = []
                    break
                if follower in inside and follower not in seen:
                    seen.add(follower)
                    paths.append([*path, (follower, why)])
    assert best is not None
    return " -> ".join(f"[{why}] {name_of(key)}" if why else name_of(key) for key, why in best)


def check_fifo(groups: dict[str, GroupLog], board: Board) -> None:
    """Per producer: same set, in sequence; different sets, in the order sent unless one is unordered."""
    for name, group in groups.items():
        last_of_set: dict[tuple[bytes, tuple[str, ...]], MessageKey] = {}
        last_ordered: dict[bytes, MessageKey] = {}
        for key in group.messages:
            sent = board.sent[key]
            if key in board.given_up or key in board.renumbered:
                continue  # its sender was told not to wait for it, and went on; or it had to go again
            earlier = [last_of_set.get(key[:2])]
            if not sent.unordered:
                earlier.append(last_ordered.get(key[0]))
                last_ordered[key[0]] = key
            last_of_set[key[:2]] = key
            for other in earlier:
                if other is not None and board.sent[other].index > sent.index:
                    raise Violation(
                        "fifo", f"{name} delivers {name_of(other)} before {name_of(key)}, which was sent earlier"
                    )


def check_causality(groups: dict[str, GroupLog], board: Board) -> None:
    """Whatever a sender had a receipt for, or was told of, comes first wherever both are delivered."""
    for name, group in groups.items():
        for key, offset in group.offsets.items():
            for seen in board.sent[key].after:
                if group.offsets.get(seen, -1) > offset:
                    raise Violation(
                        "causality",
                        f"{name} delivers {name_of(key)} before {name_of(seen)}, which its sender had seen",
                    )


def check_chains(groups: dict[str, GroupLog], board: Board) -> None:
    """Where each group has an order of its own: so does what the senders of that had seen, in whatever groups.

    Where there is one order over all groups, `check_acyclic` finds it. Sets of messages are bits of a number.
    """
    past: dict[MessageKey, int] = {}
    for key, sent in board.sent.items():  # what somebody had seen was sent before
        past[key] = 0
        for seen in sent.after:
            past[key] |= past[seen] | 1 << board.sent[seen].number
    keys = list(board.sent)
    for name, group in groups.items():
        later = sum(1 << board.sent[key].number for key in group.messages)
        for key in group.messages:
            later ^= 1 << board.sent[key].number
            if past[key] & later:
                seen = keys[(past[key] & later).bit_length() - 1]
                raise Violation(
                    "causality", f"{name} delivers {name_of(key)} before {name_of(seen)}, which precedes it"
                )
