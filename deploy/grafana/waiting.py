"""Why do messages wait: what waits now, and who held it up, from the Spark job."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from deploy.grafana import panels as p

UID = "ordercast-waiting"


def build() -> Dashboard:
    board = p.board(
        UID,
        "why do messages wait",
        "What waits now, and what it was that envelopes waited for. Blockers come from the Spark job, a window "
        "behind.",
    )
    board = p.row(board, "What waits now", *now())
    board = p.row(board, "Who holds it up (from the Spark job)", *blockers())
    return p.row(board, "Replicas that are behind (from the Spark job)", *behind())


def now() -> list:
    chosen = f"{p.DOMAIN}, {p.NODE}"
    return [
        p.lines(
            "Age of the oldest envelope",
            "How long the oldest envelope at each replica has not been delivered. A line that rises steadily is "
            "stuck: its blocker is below.",
            p.SECONDS,
            [p.query(f"ordercast_order_waiting_age_seconds{{{chosen}}}", "{{domain}} {{instance}}")],
            (2, 15),
            width=8,
        ),
        p.lines(
            "Envelopes that are not delivered",
            "Envelopes that are at a replica and not delivered. Under load some always are.",
            p.COUNT,
            [p.query(f"ordercast_order_waiting{{{chosen}}}", "{{domain}} {{instance}}")],
            width=8,
        ),
        p.lines(
            "Slowest stage, 99th percentile",
            "The stages of the way, to tell waiting for stamps (decide) from waiting for others' messages "
            "(deliver, causal).",
            p.SECONDS,
            [
                p.query(
                    p.quantile(0.99, "ordercast_stage_duration_seconds", chosen, "stage"),
                    "{{stage}}",
                    exemplars=True,
                )
            ],
            width=8,
        ),
    ]


def blockers() -> list:
    blocked = f"ordercast_analytics_blocked_seconds{{{p.DOMAIN}}}"
    envelopes = f"ordercast_analytics_blocked_envelopes{{{p.DOMAIN}}}"
    return [
        p.ranking(
            "Blockers, by time that was waited",
            "What envelopes waited for in the latest window, all their waits together; the worst is first. "
            "replica: whose word came last. message: what came before it. group, view, token: what had to happen "
            "first.",
            p.SECONDS,
            p.latest(f"sort_desc(topk(15, sum by (blocker, stage) ({blocked})))", "{{blocker}} ({{stage}})"),
        ),
        p.ranking(
            "Blockers, by envelopes that waited",
            "How many envelopes waited for each in the latest window.",
            p.COUNT,
            p.latest(
                f"sort_desc(topk(15, sum by (blocker, stage) ({envelopes})))",
                "{{blocker}} ({{stage}})",
            ),
        ),
        p.lines(
            "Blockers over time",
            "The ten worst at each moment. One that stays on top is the one to mend.",
            p.SECONDS,
            [p.query(f"topk(10, sum by (blocker) ({blocked}))", "{{blocker}}")],
            stacked=True,
        ),
        p.lines(
            "Time that was waited, by stage",
            "In which stage envelopes waited for something that could be named.",
            p.SECONDS,
            [p.query(f"sum by (domain, stage) ({blocked})", "{{domain}} {{stage}}")],
        ),
    ]


def behind() -> list:
    quantiles = f'{p.GROUP}, quantile=~"0.5|0.99|1"'
    return [
        p.lines(
            "Stragglers",
            "How far each replica is behind the first one to deliver, at its 95th percentile in the latest "
            "window.",
            p.SECONDS,
            [p.query('ordercast_analytics_straggling_seconds{node=~"$node"}', "{{node}}")],
            (0.5, 2),
            width=8,
        ),
        p.lines(
            "Between the first and the last replica",
            "How far apart the replicas of a group deliver the same envelope.",
            p.SECONDS,
            [
                p.query(
                    f"ordercast_analytics_replica_spread_seconds{{{quantiles}}}",
                    "{{domain}}/{{group}} {{quantile}}",
                )
            ],
            width=8,
        ),
        p.lines(
            "Time without quorum",
            "How long groups took no messages, in sessions that are over, since the job began.",
            p.SECONDS,
            [
                p.query(
                    p.or_none(
                        f"sum by (domain, group) (ordercast_analytics_unavailable_seconds_total{{{p.GROUP}}})",
                        "group",
                    ),
                    "{{domain}}/{{group}}",
                )
            ],
            width=8,
        ),
    ]
