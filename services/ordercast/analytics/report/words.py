"""How figures are written for people."""

from datetime import datetime

from ordercast.analytics.report.summary import Audit


def duration(seconds: float | None) -> str:
    """
    >>> duration(0.00042), duration(0.0123), duration(2.5), duration(150.0), duration(None)
    ('0.42 ms', '12.3 ms', '2.50 s', '2 min 30 s', '-')
    """
    if seconds is None:
        return "-"
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 0.01:
        return f"{seconds * 1000:.2f} ms"
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 100:
        return f"{seconds:.2f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def number(value: int) -> str:
    return f"{value:,}"


def moment(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def verdict(audit: Audit) -> str:
    if audit.violations:
        return f"Order was broken, or telemetry lies: {number(audit.violations)} violations."
    if not audit.deliveries:
        return "Nothing to audit."
    return f"Order holds: {number(audit.deliveries)} deliveries in {number(audit.ranges)} ranges agree."


def remarks(audit: Audit) -> list[str]:
    found = []
    if audit.unseen:
        found.append(
            f"{number(audit.unseen)} positions are unseen: their replica ended before it could tell of them."
        )
    if audit.alone:
        found.append(f"Of {number(audit.alone)} ranges only one replica has told: nothing to compare with.")
    return found
