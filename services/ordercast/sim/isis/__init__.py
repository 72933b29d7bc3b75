"""ISIS in the simulator."""
