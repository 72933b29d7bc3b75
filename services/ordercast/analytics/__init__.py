"""The Spark job: order lag, blockers, an order audit, stragglers and unavailability, from what was sent as
telemetry.
"""
