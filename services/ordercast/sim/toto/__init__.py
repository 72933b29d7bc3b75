"""ToTo in the simulator."""
