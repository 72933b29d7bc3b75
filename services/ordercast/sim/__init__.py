"""The simulator: the machines that services run, on a simulated network, clock and disk, under faults."""
