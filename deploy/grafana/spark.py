"""The Spark job and the spool that it reads: does it keep up, what did the audit find?"""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from deploy.grafana import panels as p

UID = "ordercast-analytics"


def build() -> Dashboard:
    board = p.board(
        UID, "Spark job", "What the order audit found, whether the job keeps up, and the spool that it reads."
    )
    board = p.row(board, "What it found", *findings())
    board = p.row(board, "Does it keep up?", *streams())
    return p.row(board, "The telemetry service", *spool())


def findings() -> list:
    violations = "ordercast_analytics_violations_total"
    return [
        p.number(
            "Violations",
            "What the order audit has found: two orders, a gap, a duplicate, an offset or a key that differs. "
            "Anything but 0 must never happen.",
            p.COUNT,
            p.latest(f"sum({violations}) or sum(ordercast_analytics_audited_total) * 0"),
            (0.5, 1),
            width=6,
            missing="not audited",
        ),
        p.number(
            "Deliveries audited",
            "Deliveries that the audit has looked at, since the job began.",
            p.COUNT,
            p.latest("sum(ordercast_analytics_audited_total)"),
            width=6,
        ),
        p.number(
            "Behind",
            "How old the newest record is that the slowest stream has read.",
            p.SECONDS,
            p.latest("max(ordercast_analytics_behind_seconds)"),
            (60, 300),
            width=6,
        ),
        p.number(
            "Dead letters",
            "Records that could not be understood, and were set aside with their reason.",
            p.COUNT,
            p.latest("sum(ordercast_analytics_dead_letters_total) or sum(ordercast_analytics_rows_total) * 0"),
            (1, 1000),
            width=6,
        ),
        p.lines(
            "Violations, by kind",
            "order, gap, duplicate, offset or key. Both traces are in the audit table.",
            p.COUNT,
            [p.query(p.or_none(f"sum by (violation) ({violations})", "violation"), "{{violation}}")],
            (0.5, 1),
            width=8,
        ),
        p.lines(
            "Audit",
            "Deliveries that the audit looks at.",
            p.RECORDS,
            [p.query("sum(rate(ordercast_analytics_audited_total[$__rate_interval]))", "deliveries")],
            width=8,
        ),
        p.lines(
            "Order lag in the latest window",
            "From every delivery of every replica, not from buckets. Compare with the overview: that is now, "
            "this is a window behind.",
            p.SECONDS,
            [p.query(f"ordercast_analytics_lag_seconds{{{p.GROUP}}}", "{{domain}}/{{group}} {{quantile}}")],
            (0.5, 2),
            width=8,
        ),
    ]


def streams() -> list:
    return [
        p.lines(
            "Records read, by stream",
            "`events` reads the spool, and the others read what it lands.",
            p.RECORDS,
            [p.query("sum by (stream) (rate(ordercast_analytics_rows_total[$__rate_interval]))", "{{stream}}")],
        ),
        p.lines(
            "Behind, by stream",
            "How old the newest record is that a stream has read. A line that rises: it does not keep up, or has "
            "stopped.",
            p.SECONDS,
            [p.query("max by (stream) (ordercast_analytics_behind_seconds)", "{{stream}}")],
            (60, 300),
        ),
        p.lines(
            "Latest batch, by stream",
            "How long the latest batch took. It cannot be longer than records come in for, or the stream falls "
            "behind.",
            p.SECONDS,
            [p.query("max by (stream) (ordercast_analytics_batch_duration_seconds)", "{{stream}}")],
            width=8,
        ),
        p.lines(
            "Rows of state",
            "What streams keep for windows that are open. It levels off; if it does not, a watermark does not "
            "advance.",
            p.COUNT,
            [p.query("max by (stream) (ordercast_analytics_state_rows)", "{{stream}}")],
            width=8,
        ),
        p.lines(
            "Dead letters, by reason",
            "Records that were set aside, since the job began.",
            p.COUNT,
            [
                p.query(
                    p.or_none("sum by (reason) (ordercast_analytics_dead_letters_total)", "reason"), "{{reason}}"
                )
            ],
            width=8,
        ),
    ]


def spool() -> list:
    offset = "ordercast_spool_offset"
    return [
        p.lines(
            "Records taken",
            "Records that are on the disk of the telemetry service, by signal.",
            p.RECORDS,
            [p.query("sum by (signal) (rate(ordercast_spool_received_total[$__rate_interval]))", "{{signal}}")],
            width=8,
        ),
        p.lines(
            "Requests refused, or there already",
            "busy and full are back-pressure: senders come back. malformed, oversize and version are senders' "
            "mistakes. Who does not hear an answer sends the request again: it is stored once.",
            p.REQUESTS,
            [
                p.query(
                    p.or_none("sum by (reason) (rate(ordercast_spool_refused_total[$__rate_interval]))", "reason"),
                    "{{reason}}",
                ),
                p.query("sum(rate(ordercast_spool_repeated_total[$__rate_interval]))", "there already", ref="B"),
            ],
            width=8,
        ),
        p.lines(
            "Writes, 99th percentile",
            "How long writes to the spool took, with their syncs. Senders wait for that, ordering does not.",
            p.SECONDS,
            [
                p.query(
                    "histogram_quantile(0.99, sum by (le, instance) "
                    "(rate(ordercast_spool_sync_duration_seconds_bucket[$__rate_interval])))",
                    "{{instance}}",
                )
            ],
            width=8,
        ),
        p.lines(
            "Records in the spool",
            "What is kept, and what of it waits to be sealed; readers see what is sealed.",
            p.COUNT,
            [
                p.query(f'max({offset}{{end="end"}}) - max({offset}{{end="begin"}})', "kept"),
                p.query(f'max({offset}{{end="end"}}) - max({offset}{{end="sealed"}})', "not sealed", ref="B"),
            ],
            width=8,
        ),
        p.lines(
            "Size",
            "Bytes of all segments. Beyond retention_bytes the oldest go.",
            p.BYTES,
            [p.query("sum by (instance) (ordercast_spool_size_bytes)", "{{instance}}")],
            width=8,
        ),
        p.lines(
            "Segments",
            "Segments that are kept, and those that could not be read in whole.",
            p.COUNT,
            [
                p.query("sum by (instance) (ordercast_spool_segments)", "{{instance}}"),
                p.query(
                    p.or_none("sum by (instance) (ordercast_spool_corrupt_total)", "instance"),
                    "{{instance}} damaged",
                    ref="B",
                ),
            ],
            width=8,
        ),
    ]
