"""What every protocol stands on: the machine interface, ids and order keys, quorums, errors."""
