"""What the tests with fuzzed input share: how messages are changed, and how a machine's state is compared.

Messages come from real conversations. One field somewhere in them is cleared, replaced, doubled or removed, or
some of their bytes are: most of a message is right, and what is wrong gets as far into a machine as it can.
"""

import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from ordercast.core import packets

NUMBERS = (0, 1, 2, 3, 9, 20, 21, 2**31, 2**32 - 1, 2**62, 2**62 + 1, 2**63, 2**64 - 2, 2**64 - 1)
BYTES = (b"", b"\0", *(b"\xff" * size for size in (8, 16, 24, 25)), *(bytes(size) for size in (15, 16, 17, 24)))
NAMES = ("", "a", "b", "c", "x", "n1", "n2", "n6", "g1", "c1", "a\0b", "no such name", "x" * 300)
#: How many inputs the long tests throw at each.
FUZZED_INPUTS = int(os.environ.get("ORDERCAST_FUZZED_INPUTS", "1000000"))
#: Nothing that one small message makes a machine do takes so long anywhere: a loop without an end does.
ENDLESS_S = 120

_SIGNED = {
    FieldDescriptor.TYPE_INT32: 2**31,
    FieldDescriptor.TYPE_SINT32: 2**31,
    FieldDescriptor.TYPE_SFIXED32: 2**31,
    FieldDescriptor.TYPE_INT64: 2**63,
    FieldDescriptor.TYPE_SINT64: 2**63,
    FieldDescriptor.TYPE_SFIXED64: 2**63,
}
_SHORT = (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32)


# ------------------------------------------------------------------------------------------------------- changing


def another_value(field: FieldDescriptor, random: Random, now: Any = None) -> Any:
    """A value that the field may have on the wire; often one that is close to what it has now."""
    match field.type:
        case FieldDescriptor.TYPE_BYTES:
            if now and random.random() < 0.3:
                return random.choice([now[:-1], now + b"\0", bytes([now[0] ^ 1]) + now[1:], now[:-1] + b"\xff"])
            return random.choice(BYTES)
        case FieldDescriptor.TYPE_STRING:
            return random.choice(NAMES)
        case FieldDescriptor.TYPE_BOOL:
            return random.random() < 0.5
        case FieldDescriptor.TYPE_ENUM:
            return random.choice([0, 1, 2, 7])
        case FieldDescriptor.TYPE_DOUBLE | FieldDescriptor.TYPE_FLOAT:
            return random.choice([0.0, -1.0, 1e300, float("inf"), float("nan")])
    number = random.choice(NUMBERS)
    if isinstance(now, int) and random.random() < 0.4:
        number = max(0, now + random.choice([-2, -1, 1, 2]))
    if field.type in _SIGNED:
        limit = _SIGNED[field.type]
        return number % (2 * limit) - limit if random.random() < 0.5 else number % limit
    return number % (2**32 if field.type in _SHORT else 2**64)


def change(message: Any, random: Random) -> None:
    """One field somewhere in it: cleared, replaced, doubled or removed."""
    if not message.DESCRIPTOR.fields:
        return
    field = random.choice(message.DESCRIPTOR.fields)
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        message.ClearField(field.name)
    elif field.message_type is None and not field.is_repeated:
        setattr(message, field.name, another_value(field, random, value))
    elif random.random() < 0.2:
        message.ClearField(field.name)
    elif not field.is_repeated:
        change(value, random)
        value.SetInParent()
    elif field.message_type is None:
        _change_list(field, value, random)
    elif not value or random.random() < 0.2:
        value.add()
    elif random.random() < 0.2:
        value.add().CopyFrom(random.choice(value))
    elif random.random() < 0.2:
        del value[random.randrange(len(value))]
    else:
        change(random.choice(value), random)


def _change_list(field: FieldDescriptor, value: Any, random: Random) -> None:
    at = random.randrange(len(value)) if value else 0
    if not value or random.random() < 0.3:
        value.append(another_value(field, random))
    elif random.random() < 0.3:
        del value[at]
    else:
        value[at] = another_value(field, random, value[at])


def change_bytes(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    return random.choice(
        [
            data[:at],
            data[:at] + bytes([random.randrange(256)]) + data[at + 1 :],
            data[:at] + random.randbytes(3) + data[at:],
            data[:at] + data[at + 1 :],
            random.randbytes(at),
        ]
    )


def changed(message: Any, random: Random) -> Any:
    """A changed copy."""
    copy = type(message)()
    copy.CopyFrom(message)
    for _ in range(random.choice([0, 1, 1, 1, 1, 2, 3])):
        change(copy, random)
    return copy


def garbled(message: Message, random: Random) -> Any:
    """What is read from the message's packet after some of its bytes were changed; None if nothing is."""
    try:
        return packets.decode(change_bytes(packets.encode(message), random))
    except DecodeError:
        return None


# ---------------------------------------------------------------------------------------------------------- state

#: What a machine sets anew at the beginning of each step, its settings, what it measures, and a view's index.
OF_A_STEP = frozenset(
    {
        *("now", "wall", "out", "changes", "then", "touched", "about", "cause", "_came"),
        *("settings", "pressure", "_replicas", "_acceptors"),
    }
)


def state_of(machine: Any, leaving_out: frozenset[str] = OF_A_STEP) -> list[Any]:
    """All that can be reached from a machine, as plain values in a fixed order: two of them can be compared, and
    the length of one says how much there is.
    """
    found: list[Any] = []
    seen: dict[int, int] = {}
    kept: list[Any] = []  # While they are here, no other object gets their ids.
    stack: list[Any] = [machine]
    while stack:
        one = stack.pop()
        kind = type(one)
        if one is None or kind in (int, str, bytes, bool, float):
            found.append(one)
            continue
        if kind in (FunctionType, MethodType, BuiltinFunctionType) or isinstance(one, type):
            continue
        if id(one) in seen:
            found.append(("again", seen[id(one)]))
            continue
        seen[id(one)] = len(seen)
        kept.append(one)
        found.append(kind)
        if isinstance(one, Message):
            found.append(one.SerializeToString(deterministic=True))
        elif isinstance(one, dict):
            found.append(len(one))
            for key, value in reversed(one.items()):
                stack += (value, key)
        elif isinstance(one, (list, tuple, deque)):
            found.append(len(one))
            stack.extend(reversed(one))
        elif isinstance(one, (set, frozenset)):
            found.append(len(one))
            stack.extend(sorted(one, key=repr))
        else:
            stack.extend(value for name, value in _attributes_of(one) if name not in leaving_out)
    return found


def _attributes_of(one: Any) -> Iterator[tuple[str, Any]]:
    for kind in type(one).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(one, name) and name not in ("__dict__", "__weakref__"):
                yield name, getattr(one, name)
    yield from getattr(one, "__dict__", {}).items()


def first_difference(before: Sequence[Any], after: Sequence[Any]) -> str:
    """Where two states begin to differ, with what comes before it."""
    common = zip_longest(before, after, fillvalue="nothing")
    at = next((index for index, (old, new) in enumerate(common) if old != new), len(before))
    return f"{before[max(0, at - 8) : at + 4]} and {after[at : at + 4]}"


@contextmanager
def with_an_end(seconds: int = ENDLESS_S) -> Iterator[None]:
    """A loop over a number that somebody sent would take years: it ends here, as a failure of the test."""

    def ends(signum: int, frame: Any) -> None:
        raise AssertionError(f"one message keeps a machine busy for more than {seconds} s")

    # Processor time of this process: how busy the machine is does not matter.
    before = signal.signal(signal.SIGVTALRM, ends)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def fields_of(state: Sequence[Any]) -> int:
    """How much a state holds: values, and bytes."""
    return sum(len(value) if isinstance(value, (bytes, str)) else 1 for value in state)
