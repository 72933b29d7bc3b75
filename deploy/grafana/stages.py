"""Latency by stage: where on its way an envelope's time goes, as heatmaps."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from deploy.grafana import panels as p

UID = "ordercast-stages"
STAGE = "ordercast_stage_duration_seconds"


def build() -> Dashboard:
    board = p.board(
        UID, "latency by stage", "Where on its way an envelope's time goes. Dots are traces that were kept."
    )
    board = board.with_variable(p.choice("stage", "Stage", p.values(f"{STAGE}_count{{{p.DOMAIN}}}", "stage")))
    board = p.row(board, "The whole way", *whole())
    board = p.row(board, "Stages compared", *compared())
    # One for each stage that is chosen.
    each = p.heat(
        "$stage",
        "How long this stage took. What each stage is: docs/telemetry-schema.md, under spans.",
        p.SECONDS,
        STAGE,
        f'{p.DOMAIN}, {p.NODE}, stage=~"$stage"',
        exemplars=True,
    )
    return p.row(board, "Stage by stage", each.repeat("stage").repeat_direction("h").max_per_row(3))


def whole() -> list:
    chosen = f"{p.GROUP}, {p.NODE}"
    return [
        p.heat(
            "Publish",
            "From the first message of an envelope accepted to its receipts, in each of its groups.",
            p.SECONDS,
            "ordercast_publish_duration_seconds",
            chosen,
            exemplars=True,
        ),
        p.heat(
            "Order lag",
            "From accepted at the gateway to delivered at each replica, by two wall clocks. A band far above the "
            "others is a replica that is behind.",
            p.SECONDS,
            "ordercast_delivery_lag_seconds",
            chosen,
            exemplars=True,
        ),
        p.lines(
            "Publish latency by group, 99th percentile",
            "What clients wait, by group that the envelope was for.",
            p.SECONDS,
            [
                p.query(
                    p.quantile(0.99, "ordercast_publish_duration_seconds", chosen, "domain, group"),
                    "{{domain}}/{{group}}",
                    exemplars=True,
                )
            ],
            (0.5, 2),
        ),
        p.lines(
            "Order lag by replica, 99th percentile",
            "Of what each node delivered. One that is above the others falls behind, or its clock does.",
            p.SECONDS,
            [
                p.query(
                    p.quantile(0.99, "ordercast_delivery_lag_seconds", chosen, "instance"),
                    "{{instance}}",
                    exemplars=True,
                )
            ],
            (0.5, 2),
        ),
    ]


def compared() -> list:
    chosen = f'{p.DOMAIN}, {p.NODE}, stage=~"$stage"'
    return [
        p.lines(
            "Stages, median",
            "What each stage takes in the middle, by protocol.",
            p.SECONDS,
            [p.query(p.quantile(0.5, STAGE, chosen, "protocol, stage"), "{{protocol}} {{stage}}")],
            width=8,
        ),
        p.lines(
            "Stages, 99th percentile",
            "What each stage takes when it is slow. The stage that rises is where to look.",
            p.SECONDS,
            [
                p.query(
                    p.quantile(0.99, STAGE, chosen, "protocol, stage"), "{{protocol}} {{stage}}", exemplars=True
                )
            ],
            width=8,
        ),
        p.lines(
            "Envelopes through each stage",
            "How many passed, summed over replicas. A stage with fewer than the one before holds something up.",
            p.ENVELOPES,
            [p.query(p.rate(f"{STAGE}_count", chosen, "protocol, stage"), "{{protocol}} {{stage}}")],
            width=8,
        ),
    ]
