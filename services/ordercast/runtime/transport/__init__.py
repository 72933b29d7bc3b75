"""How processes and clients reach each other: ports, calls, frames, certificates."""
