"""A group's log: what every protocol that orders groups needs of it, written once."""
