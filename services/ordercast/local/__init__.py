"""A cluster of real processes on this machine, and what is done with it: load, verification, chaos, benchmark."""
