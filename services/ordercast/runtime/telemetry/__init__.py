"""What a process says about itself: metrics for everything, deliveries for everything, spans for what is kept."""
