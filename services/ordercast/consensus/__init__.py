"""The acceptors of the groups that are placed here."""
