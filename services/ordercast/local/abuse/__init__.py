"""Hostile clients beside an honest one: what `ordercast abuse` plays and measures."""
