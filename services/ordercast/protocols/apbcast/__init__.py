"""Total order for very large audiences: replicated roots merge streams, and gossip carries messages down
levels.
"""
