"""What an operator does about damage: what messages about it end with. docs/operations.md says it at length."""

from ordercast.runtime.storage.layout import INDEX, LOGS, META, CorruptRecord, LostWritesError

#: Nothing on the disk can be used.
DISK = (
    "If the node did not run since its directory was copied, bring back the whole copy. "
    "Otherwise treat the disk as lost: `ordercast node give-up-disk NAME`, and start the node with an "
    "empty directory"
)
#: One entry of a log.
ENTRY = (
    "the running node fetches it from another replica by itself, and logs `damaged log entry replaced`. If no "
    "replica has it, bring back a disk that has"
)
#: Where the messages of a group are in the log of its cell.
ROW = "the running node makes it anew from its log when somebody reads it, and logs `damaged index mended`"
#: What the node had promised, or where a log begins.
RECORD = (
    "the running node takes no part in the groups concerned until they are copied from the others, by itself: "
    "wait until `ordercast status` ends with 0"
)


def of_record(damaged: CorruptRecord) -> str:
    """For a node that starts in spite of it."""
    if damaged.database == LOGS:
        return ENTRY
    if damaged.database == INDEX:
        return ROW
    return DISK if damaged.database == META else RECORD


def of_refused_start(error: Exception) -> str:
    """What was found, and what to do, if a process did not start because of it."""
    # Others say what to do themselves.
    is_bare = isinstance(error, CorruptRecord | LostWritesError)
    return f"{error}. {DISK}" if is_bare else str(error)
