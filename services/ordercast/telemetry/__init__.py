"""The telemetry service: takes OTLP, keeps it on disk, and gives it to whoever reads by offset."""
