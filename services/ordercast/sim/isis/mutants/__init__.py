"""ISIS, broken on purpose. See sim/mutants."""
