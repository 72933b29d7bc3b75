"""ToTo: total order read off a causal DAG, as early as a majority leaves no choice."""
