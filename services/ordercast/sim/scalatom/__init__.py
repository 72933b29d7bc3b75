"""SCALATOM in the simulator: what is its own of a trial."""
