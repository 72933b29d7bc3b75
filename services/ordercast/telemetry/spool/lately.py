"""Requests that were taken lately: a sender that did not hear the answer sends the same once more.

They are told apart by a hash of all their bytes. Those have times in them, to the nanosecond, so that two which
are the same are one that came twice. It is answered as it was the first time, and not stored again. What is
remembered outlives the process: of requests that are not sealed it is found again in their bytes, and a sealed
segment keeps it in its index.
"""

import time
from collections.abc import Iterable
from hashlib import blake2b

#: Whoever repeats a request later than this is taken to say something new.
KEPT_S = 120.0
KEPT_MAX = 1 << 18
MARK_BYTES = 16

#: When it was received, in nanoseconds, and its mark.
Taken = tuple[int, bytes]


def mark_of(signal: str, payload: bytes | memoryview) -> bytes:
    return blake2b(payload, digest_size=MARK_BYTES, person=signal.encode()).digest()


def kept_since_ns() -> int:
    return time.time_ns() - int(KEPT_S * 1e9)


def still_kept(taken: Iterable[Taken]) -> list[Taken]:
    since = kept_since_ns()
    return [one for one in taken if one[0] >= since]


class Lately:
    def __init__(self, taken: Iterable[Taken] = ()) -> None:
        #: In the order in which they came.
        self._received_ns = {mark: received_ns for received_ns, mark in sorted(still_kept(taken))}

    def add(self, mark: bytes) -> None:
        self._received_ns[mark] = time.time_ns()
        self._forget()

    def __contains__(self, mark: bytes) -> bool:
        self._forget()
        return mark in self._received_ns

    def _forget(self) -> None:
        since = kept_since_ns()
        while self._received_ns:
            oldest = next(iter(self._received_ns))
            if self._received_ns[oldest] >= since and len(self._received_ns) <= KEPT_MAX:
                return
            del self._received_ns[oldest]
