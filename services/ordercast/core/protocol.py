"""What a protocol is to everybody else: one value.

Each protocol exports a `Protocol` (`protocols/<name>/protocol.py`), and `protocols/catalogue.py` lists them.
Nobody else knows a protocol by its name: whoever has to treat domains differently asks the traits of their
protocols, and whoever needs something that is a protocol's own, such as a machine, takes it from the value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING
from typing import Protocol as Interface

from ordercast.core.causal import CausalCodec

if TYPE_CHECKING:  # whoever asks for traits does not want to wait for it
    from ordercast.core.machine import Machine
    from ordercast.core.submission import MakeSubmission


class Orders(StrEnum):
    """Where messages have one order that everybody sees."""

    #: Over all groups of a domain: an order key compares with that of any other message.
    ACROSS = "across"
    #: In each group by itself: an order key compares within its group.
    WITHIN = "within"


class Early(StrEnum):
    """What a replica shows before a message has its place in the log."""

    NONE = "none"
    #: Each message once, in causal order, as one replica delivers it.
    LIVE = "live"
    #: Most messages once, in an order that the log may turn out to have otherwise: each that is shown is followed
    #: by its place in the log, or by a Revoked.
    OPTIMISTIC = "revocable"


class Members(StrEnum):
    """How the members of a group change (membership/kinds/)."""

    #: Somebody asks for another set of replicas, and the next configuration begins when it can.
    CONFIGURATIONS = "configurations"
    #: One view follows another as processes come and go.
    VIEWS = "views"


class Genuine(StrEnum):
    """Whether only the processes of a message's groups, and its gateway, do something for it."""

    YES = "yes"
    #: Groups talk for a message's sake if one of them may send to the other, also if it is for neither of them.
    QUASI = "quasi"
    NO = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The defaults are those of a protocol that only orders messages over all groups of a domain."""

    orders: Orders = Orders.ACROSS
    #: Entries of a log say what they come after in other groups, so that several logs can be read in causal order.
    causal: bool = False
    early: Early = Early.NONE
    #: The length of an order key.
    key_bytes: int
    #: Logs of several groups can be merged by order key.
    merges: bool = False
    members: Members = Members.CONFIGURATIONS
    #: Groups have acceptors besides replicas, and the consensus service runs machines for them.
    acceptors: bool = False
    genuine: Genuine


class DomainSettings(Interface):
    """The settings of one domain, parsed."""

    @property
    def spans_groups(self) -> bool:
        """Whether a message of such a domain may go to several groups."""
        ...

    @property
    def untold_past(self) -> str:
        """Why entries of such a domain do not say what they come after, though the protocol's trait is `causal`.

        It goes on after the domain's name, and says what to do. Empty if they do.
        """
        ...


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a domain, as users are told about it."""

    name: str
    #: What may be given, in words.
    values: str
    default: str
    #: All that may be given, if that is one of a few.
    choices: tuple[str, ...] = ()
    #: A group may have its own.
    of_groups: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A moment on an envelope's way that a machine observes (`Observe.stage`), as telemetry shows it."""

    #: In metrics and as an attribute; the span is called so too.
    label: str
    #: It begins when the latest of these moments was reached; or when the machine says, if there are none.
    after: tuple[str, ...] = ()


class SeenCodec(Interface):
    """What a client has seen in a domain, as bytes that only the domain's protocol reads.

    Session tokens carry it (core/session_token.py), behind a mark that tells one protocol's form from another's.
    Methods that read bytes raise RemoteProtocolError if those are none of this form.
    """

    @property
    def mark(self) -> bytes:
        """MARK_BYTES long; or empty if the form is a clock: CLOCK_BYTES, of which the bytewise higher covers."""
        ...

    def of_entries(self, group: str, entries: Sequence[bytes], besides: bytes) -> bytes:
        """What whoever reads these entries of a group's log has seen; each is a serialised LogEntry.

        `besides` is what the log's replica said with them (`TellsReaders.read_besides`), or empty.
        """
        ...

    def merged(self, seen: Sequence[bytes]) -> bytes:
        """One for all that each of them stands for."""
        ...

    def covers(self, one: bytes, other: bytes) -> bool:
        """Whether all that `other` stands for is in `one`. If in doubt it is not."""
        ...

    def check(self, seen: bytes) -> None:
        """Raise RemoteProtocolError if nobody can have seen this."""
        ...


class RecordScope(Interface):
    """What a protocol knows about the keys of its machine's records."""

    def group_of(self, key: bytes) -> str | None:
        """The group whose record it is; None if it is not one group's."""
        ...

    def position_in(self, key: bytes, value: bytes) -> tuple[str, int] | None:
        """A group and where its log must at least end, if that is what the record says."""
        ...

    def end_of(self, address: str) -> bytes:
        """The key of the record that says which offset is next in a group that shares its cell; 8 bytes."""
        ...


class ReplicaFactory(Interface):
    def __call__(self, process: str, settings: Mapping[str, str], *, observe: bool) -> "dict[str, Machine]":
        """The machines of a process that holds replicas, by role. One has the protocol's name as its role."""
        ...


@dataclass(frozen=True, slots=True)
class Protocol:
    name: str
    traits: Traits
    settings: tuple[Setting, ...]
    #: The settings of a domain as users write them, in a cluster of some level. It raises a ValueError that can be
    #: shown to users.
    parse: Callable[[Mapping[str, str], int], DomainSettings]
    replica: ReplicaFactory
    #: How gateways send in a domain with these settings.
    submission: "Callable[[Mapping[str, str]], MakeSubmission]"
    seen: SeenCodec
    records: RecordScope
    #: By what its machines call the moment.
    stages: Mapping[str, Stage]
    #: The level (core/level.py) that a cluster needs for domains with it; 0: it has been there from the beginning.
    level: int = 0
    #: Reads what entries say they come after; None unless that is a trait.
    causal: CausalCodec | None = None
    #: The machines of a process that holds acceptors, by role.
    acceptor: "Callable[[str], dict[str, Machine]] | None" = None
    #: Checks a group's own settings, given its domain's; None if groups have none. It raises a ValueError as well.
    check_group: Callable[[Mapping[str, str], Mapping[str, str]], None] | None = None

    def __post_init__(self) -> None:
        if self.traits.causal != (self.causal is not None):
            raise ValueError(f"the protocol {self.name} has to tell what entries come after as its traits say")
        if self.traits.orders == Orders.WITHIN and self.causal is None:
            raise ValueError(
                f"the protocol {self.name} tells nothing by which several of its logs could be judged"
            )
        if self.traits.acceptors != (self.acceptor is not None):
            raise ValueError(f"the protocol {self.name} has to have acceptors as its traits say")

    def setting(self, name: str) -> Setting | None:
        return next((setting for setting in self.settings if setting.name == name), None)
