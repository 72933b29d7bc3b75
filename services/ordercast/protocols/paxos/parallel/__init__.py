"""A replicated log per cell with parallel instances: see README.md."""
