"""Large audiences in the simulator: roots, broadcasters and leaves, what happens to them, and what must hold."""
