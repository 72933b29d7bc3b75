"""Analytics: what Spark makes of the telemetry that the telemetry service keeps."""
