"""What a membership node can set, and the limits that all of them have to agree on.

The limits decide what a command comes to, so two members with different ones would end up with different states:
they are constants, and change only together with a version of the whole cluster.
"""

import math
from dataclasses import dataclass, field

from ordercast.core.level import LEVEL as LEVEL
from ordercast.protocols import catalogue
from ordercast.protocols.paxos.log_state import LogSettings

# ------------------------------------------------------------------------------------------ agreed limits
# Together they keep a snapshot below SNAPSHOT_BYTES_MAX even if every item is as large as it may be.

SNAPSHOT_BYTES_MAX = 48 * 1024 * 1024

NODES_MAX = 256
DOMAINS_MAX = 64
#: Groups that have a cell to themselves, and cells that others share: what is placed, and told to machines.
PLACED_MAX = 1024
#: All groups together: one that shares its cell is an entry in a table.
GROUPS_MAX = 100_000
CURSORS_MAX = 4096
#: Nodes that are gone and still told to watchers.
TOMBSTONES_MAX = 256
#: As many groups: more than go in one slot, or every watcher would have to start afresh with all that there are.
GROUP_TOMBSTONES_MAX = 2048
#: Results that are kept for commands that are repeated, by count and by size.
EXECUTED_COUNT_MAX = 1024
EXECUTED_BYTES_MAX = 768 * 1024

REPLICAS_MAX = 7
REPLICAS_DEFAULT = 3

#: Of installed packages, at one node.
PROTOCOLS_MAX = 8

REQUEST_ID_BYTES_MAX = 64
NODE_ID_BYTES_MAX = 64
CLUSTER_ID_BYTES_MAX = 64
KEY_BYTES_MAX = 64
#: A host name has at most 253 characters.
ADDRESS_CHARACTERS_MAX = 260
ZONE_CHARACTERS_MAX = 63
#: All names and values of a domain's or a group's settings together.
SETTINGS_BYTES_MAX = 1024
CURSORS_PER_COMMAND_MAX = 256
LOST_PER_COMMAND_MAX = 256
COMMAND_BYTES_MAX = 48 * 1024
#: What an answer quotes of something that is wrong.
QUOTED_CHARACTERS_MAX = 80

#: The domain that is there from the beginning.
DOMAIN_DEFAULT = "default"
PROTOCOL_DEFAULT = catalogue.DEFAULT.name

#: What a command costs in a batch beyond its own bytes: a field number and a length.
COMMAND_FRAMING_BYTES = 4

# -------------------------------------------------------------------------------------------- per member


@dataclass(frozen=True, slots=True)
class MembershipSettings:
    """Times bound how long a fault is felt; none of them is a safety argument."""

    #: How often a leader looks for what has to be done.
    tick_s: float = 0.5
    #: Silence after which a node is suspected.
    suspect_s: float = 3.0
    #: Silence after which a node's incarnation is declared over.
    end_after_s: float = 300.0
    #: Slots between two snapshots.
    snapshot_every: int = 1000
    #: Commands that wait for the next slot; their bytes are bounded by what a slot holds.
    batch_count_max: int = 512
    #: Groups that are moved away from draining or missing nodes at a time, and as many that are restored in place.
    moves_at_once: int = 2
    #: A node whose incarnation ended so long ago is replaced in its groups; 0: never by itself.
    replace_after_s: float = 0.0
    #: A change whose newcomer's incarnation ended so long ago is given up.
    cancel_after_s: float = 300.0
    #: Those of the log below.
    log: LogSettings = field(default_factory=lambda: LogSettings(snapshot_bytes_max=SNAPSHOT_BYTES_MAX))

    def __post_init__(self) -> None:
        if not 0 < self.tick_s <= self.suspect_s < self.end_after_s:
            raise ValueError("tick_s <= suspect_s < end_after_s has to hold, and all have to be positive")
        if not 0 < self.snapshot_every < self.log.log_count_max:
            raise ValueError("snapshot_every has to be positive, and less than the log's log_count_max")
        if self.batch_count_max < 1:
            raise ValueError("batch_count_max has to be positive")
        if self.moves_at_once < 1:
            raise ValueError("moves_at_once has to be positive")
        if not (0 <= self.replace_after_s < math.inf and 0 < self.cancel_after_s < math.inf):
            raise ValueError("replace_after_s has to be 0 or more, and cancel_after_s more than 0")
        if self.log.value_bytes_max < COMMAND_BYTES_MAX + COMMAND_FRAMING_BYTES:
            raise ValueError(f"a slot has to hold a command of {COMMAND_BYTES_MAX} bytes")
