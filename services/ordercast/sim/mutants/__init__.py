"""Mutants: the protocol broken on purpose, to prove that the checkers can fail."""
