"""Who is where: the nodes, domains, groups and cursors of a cluster, agreed on through a replicated log."""
