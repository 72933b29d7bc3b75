"""What a process knows of Kubernetes when it runs there."""
