"""Where the telemetry service puts what it takes: a spool of its own, or Kafka."""
