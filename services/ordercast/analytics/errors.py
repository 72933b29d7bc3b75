"""What the job tells its user instead of a traceback."""


class AnalyticsError(Exception):
    """The text says what is wrong, and what to do."""
