"""The casts of one view: who may cast, what has come of each, and what of it may be delivered.

A member that casts has delivered all that its cast comes behind, and says so with a time. So what has come is
delivered in causal order by a rule that looks at nothing but times [BSS91 5.1]. The view ends, and everything in
here with it: counts begin at 0 in the next.
"""

from typing import Generic, TypeVar

from ordercast.protocols.causal.times import Times

#: (the caster's place, its how many-th cast): unique within a view.
Key = tuple[int, int]

C = TypeVar("C")


class Casts(Generic[C]):
    def __init__(self, group: str, view: int, members: tuple[str, ...], me: int) -> None:
        #: What the view is of, as times name it.
        self.group = group
        self.view = view
        self.members = members
        self.me = me
        size = len(members)
        #: By member: casts received and delivered, without a gap.
        self.received = [0] * size
        self.delivered = [0] * size
        self.sent = 0
        #: Kept as long as somebody may need them, with what precedes them.
        self.casts: dict[Key, C] = {}
        self.times: dict[Key, Times] = {}
        #: The view ended and all of it is here: what is not delivered yet is only waiting for something else.
        self.is_closed = False
        #: A later view is defined: nothing more is said here, for what is said now is in no contribution.
        self.is_sealed = False

    @property
    def others(self) -> list[str]:
        return [name for index, name in enumerate(self.members) if index != self.me]

    @property
    def is_waiting(self) -> bool:
        """Something is not delivered yet, or the view is about to end."""
        return self.is_closed or self.delivered != self.received

    def is_delivered(self, key: Key) -> bool:
        return self.delivered[key[0]] >= key[1]

    # ------------------------------------------------------------------------------------------ taking

    def came(self, key: Key, cast: C, times: Times) -> None:
        """The next cast of its caster."""
        assert key[1] == self.received[key[0]] + 1
        self.received[key[0]] = key[1]
        self.keep(key, cast, times)

    def keep(self, key: Key, cast: C, times: Times) -> None:
        self.casts[key] = cast
        self.times[key] = times

    def lose(self, key: Key) -> None:
        del self.casts[key], self.times[key]

    # ------------------------------------------------------------------------------------------ delivery

    def precedes_is_delivered(self, key: Key) -> bool:
        """[5.1 step 2; 6.1 rules 2.1', 2.2'] It is its caster's next, and its past in this view is delivered."""
        if key[1] != self.delivered[key[0]] + 1:
            return False
        time = self.times[key].get(self.group)
        return time is None or time.is_covered(self.view, self.delivered)

    def candidates(self) -> list[Key]:
        """Of each member the first that is not delivered."""
        return [
            (member, count + 1) for member, count in enumerate(self.delivered) if count < self.received[member]
        ]
