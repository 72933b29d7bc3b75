"""The one schema of all telemetry: attributes, spans, events, metrics, and the columns of records in tables.

The TOML files beside this module are the source; `names.py` and `docs/telemetry-schema.md` are made from them by
`make schema`. Whoever emits something takes its name from `names.py`, and tests hold both against each other.
"""
