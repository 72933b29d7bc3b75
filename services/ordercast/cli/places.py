"""Where to begin reading, as it is written on the command line."""

import re
from datetime import datetime, timedelta

import typer

OFFSET_MAX = (1 << 64) - 1
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

#: How the help shows it.
METAVAR = "earliest|latest|OFFSET|AGE|TIME"


def parse_start(text: str) -> str | int | datetime | timedelta:
    """`earliest`, `latest`, an offset as a number, how long ago, or a time, which is local if it names no zone.

    >>> parse_start("17"), parse_start("10m"), parse_start("2026-11-17T10:00")
    (17, datetime.timedelta(seconds=600), datetime.datetime(2026, 11, 17, 10, 0))
    """
    if text in ("earliest", "latest"):
        return text
    if text.isascii() and text.isdecimal() and len(text) <= 20 and int(text) <= OFFSET_MAX:
        return int(text)
    age = re.fullmatch(r"([0-9]{1,6})([smhdw])", text)
    if age is not None:
        return timedelta(**{UNITS[age[2]]: int(age[1])})
    try:
        # Python takes other forms too, such as weeks of a year, which are more likely slips of the finger.
        if re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise typer.BadParameter(
        f"{text[:64]!r} is no place in a log: that is earliest, latest, an offset such as 1200, an age such as "
        "45s, 10m, 2h or 7d, or a time such as 2026-11-17T10:00"
    )
