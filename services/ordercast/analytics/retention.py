"""Old days are deleted, so that tables do not grow for ever. Spark's log of a table forgets their
files by itself.
"""

import shutil
from datetime import UTC, date, datetime, timedelta

from ordercast.analytics.tables import Tables

#: When a record has no time of receipt, it lies here: such days say nothing about age.
NEVER = date(1970, 1, 1)


def forget(tables: Tables, names: tuple[str, ...], keep_days: int, today: date | None = None) -> list[str]:
    """Deletes the days of these tables that are older; which they were. 0 days: none."""
    if not keep_days:
        return []
    since = (today or datetime.now(UTC).date()) - timedelta(days=keep_days)
    found = []
    for name in names:
        for folder in sorted(tables.path(name).glob("date=*")):
            day = date.fromisoformat(folder.name.partition("=")[2])
            if NEVER < day < since:
                shutil.rmtree(folder)
                found.append(f"{name}/{folder.name}")
    return found
