"""Property tests draw the same examples in every run: a failure replays, and a slow machine fails nothing."""

from hypothesis import settings

settings.register_profile("replayable", derandomize=True, deadline=None, database=None)
settings.load_profile("replayable")
