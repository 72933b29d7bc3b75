"""What the tables say about a time range: on a terminal, and as one HTML file to look at or to send to someone."""
