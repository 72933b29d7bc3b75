"""The loop that gives machines their events and performs their effects."""
