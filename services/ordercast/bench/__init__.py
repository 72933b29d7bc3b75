"""How fast a local cluster is, alone and beside systems that people would use instead, on the same machine."""
