"""The spool: requests as they came, on disk before they are answered, and sealed later as Arrow.

A request is a frame in the active segment (`frames`, `intake`). Segments that are full or old enough are closed,
and a process of its own makes Arrow of them (`sealing`, `sealed`, `worker`). `spool` brings it all together.
"""
