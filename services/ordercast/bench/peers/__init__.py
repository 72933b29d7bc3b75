"""The systems that ours is compared with, as one would run them for the same promise: synced at a majority."""
