"""Optimistic atomic multicast: see README.md."""
