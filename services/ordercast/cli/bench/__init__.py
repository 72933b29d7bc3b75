"""`ordercast bench`: how fast a local cluster is, alone or beside others."""
