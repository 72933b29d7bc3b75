"""Ordercast: total order for messages that are sent to any set of groups (genuine atomic multicast)."""
