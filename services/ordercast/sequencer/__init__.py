"""The replicas that are placed here: the ordering protocol's machines, and each group's log."""
