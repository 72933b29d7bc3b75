"""The protocols: pure machines, one folder each, with a README to learn it from."""
