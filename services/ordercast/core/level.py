"""What this software understands, as one number that rises when nodes have to understand something new together.

Every node says it when it registers. A cluster uses what is new once all of its nodes have the level, and from
then on refuses nodes without it.

    0   groups keep the replicas and acceptors that they were created with
    1   groups change their replicas; nodes are drained, removed, and readmitted with a new disk
    2   groups have views, if their domain's protocol changes members that way
    3   envelopes name the clients of their producers, and groups remember only so many producers of a set
    4   nodes say which protocols they have from installed packages, and domains may have those that all nodes have
    5   groups may share cells
    6   cursors may be over several groups of a domain, and groups may get another retention
"""

LEVEL = 6
#: From this level on protocols of installed packages can be used.
INSTALLED_LEVEL = 4
#: And from this one on groups may share cells.
CELLS_LEVEL = 5
#: And from this one on there may be cursors over several groups.
MERGED_LEVEL = 6
#: And from this one on groups may get another retention.
UPDATES_LEVEL = 6
