"""A process of the cluster: its settings, its life, its place among the others."""
