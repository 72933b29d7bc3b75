"""`ordercast kube`: a cluster in Kubernetes, seen from outside."""
