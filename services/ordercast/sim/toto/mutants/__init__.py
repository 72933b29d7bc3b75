"""ToTo, broken on purpose: each mutant has to be caught."""
