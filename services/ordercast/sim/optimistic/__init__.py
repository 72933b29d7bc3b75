"""Optimistic atomic multicast on trial."""
