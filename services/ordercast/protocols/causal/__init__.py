"""Casts in vector time, inside views: what causal protocols have in common."""
