"""Mutants: the smallest changes that break one rule each, and the stories that catch the rare ones."""
