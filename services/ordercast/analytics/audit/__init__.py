"""The order audit: what all replicas say they delivered, held against each other.

It knows nothing of how the order was made. It asks of what was delivered (see docs/analytics.md for the whole
argument):

- at one position of a group, all replicas have the same envelope, key, offset and number of messages
  (`positions.py`);
- along the positions of a group, keys rise and offsets follow on (`positions.py`);
- an envelope has one key and, in each group, one position (`envelopes.py`);
- a replica leaves no position out (`runs.py`).

If an envelope has one key wherever it goes, and keys rise in every group, then all groups order by the same
numbers, and no two groups can contradict each other, however many others are between them: a cycle would need a
number that is less than itself. So no pair of groups has to be compared, and state is kept for ranges of one
group's positions, and for ranges of one gateway's envelopes. Nothing is kept for single offsets.

Deliveries are packed by ranges before they are shuffled (`packs.py`): one row for hundreds of deliveries.
"""
