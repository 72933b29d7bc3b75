"""The Python SDK: publish, subscribe and administer, with asyncio (`aio`) or with threads (`sync`).

`session` and `subscription` decide everything and do no I/O; the two drivers beside them only carry bytes.
"""
