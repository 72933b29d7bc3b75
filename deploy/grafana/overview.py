"""Is it healthy, and what does a publish cost? The first one to look at."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from deploy.grafana import panels as p

UID = "ordercast-overview"


def build() -> Dashboard:
    board = p.board(UID, "overview", "Is it healthy, and what does a publish cost? Red first, from left to right.")
    board = p.row(board, "Is it healthy?", *health())
    board = p.row(board, "What does a publish cost?", *cost())
    board = p.row(board, "Load", *load())
    return p.row(board, "What runs", *running())


def health() -> list:
    groups, waiting, storage = "ordercast-groups", "ordercast-waiting", "ordercast-storage"
    return [
        p.number(
            "Alerts that fire",
            "Alerts of Ordercast that fire now. Prometheus lists them under /alerts; docs/monitoring.md says "
            "what to do.",
            p.COUNT,
            p.latest(p.or_none('count(ALERTS{alertname=~"Ordercast.*", alertstate="firing"})')),
            (1, 2),
            width=3,
        ),
        p.number(
            "Groups without quorum",
            "Groups that no gateway believes to have a majority of their replicas up. Messages to them are "
            "refused.",
            p.COUNT,
            p.latest(p.or_none(f"count(max by (domain, group) (ordercast_group_available{{{p.GROUP}}}) == 0)")),
            (0.5, 1),
            width=3,
            link=p.to_dashboard(groups, "Groups and views"),
        ),
        p.number(
            "Order violations",
            "What the order audit of the Spark job has found. Anything but 0 must never happen; `not audited` "
            "means that no job runs, and nobody has looked.",
            p.COUNT,
            p.latest("sum(ordercast_analytics_violations_total) or sum(ordercast_analytics_audited_total) * 0"),
            (0.5, 1),
            width=3,
            missing="not audited",
            link=p.to_dashboard("ordercast-analytics", "Spark job"),
        ),
        p.number(
            "Oldest waiting envelope",
            "How long the oldest envelope has been at a replica without being delivered. Everything behind it "
            "waits too.",
            p.SECONDS,
            p.latest(f"max(ordercast_order_waiting_age_seconds{{{p.DOMAIN}, {p.NODE}}})"),
            (2, 15),
            width=3,
            link=p.to_dashboard(waiting, "Why do messages wait"),
        ),
        p.number(
            "Late publishes",
            "Of all envelopes of the last five minutes, the share that had its receipts after more than half a "
            "second, in the worst domain. One of 100 is the objective.",
            p.SHARE,
            p.latest(f"max(domain:ordercast_publish_late:ratio_rate5m{{{p.DOMAIN}}})"),
            (0.01, 0.144),
            width=3,
            missing="no traffic",
            link=p.to_dashboard("ordercast-stages", "Latency by stage"),
        ),
        p.number(
            "Processes down",
            "Processes that Prometheus should read and cannot.",
            p.COUNT,
            p.latest(p.or_none('count(up{job=~"ordercast.*"} == 0)')),
            (1, 2),
            width=3,
        ),
        p.number(
            "Nodes suspected",
            "Nodes that membership has not heard from for a while.",
            p.COUNT,
            p.latest("max(ordercast_nodes_suspected)"),
            (1, 2),
            width=3,
            link=p.to_dashboard(groups, "Groups and views"),
        ),
        p.number(
            "Least room left",
            "The share of the disk, or of the store, that is left to the node that has least.",
            p.SHARE,
            p.latest(f"min(ordercast_storage_free_share{{{p.NODE}}})"),
            (0.1, 0.2),
            low_is_bad=True,
            width=3,
            link=p.to_dashboard(storage, "Consensus and storage"),
        ),
    ]


def cost() -> list:
    chosen = f"{p.GROUP}, {p.NODE}"
    by_stage = f"{p.DOMAIN}, {p.NODE}"
    took = p.rate("ordercast_stage_duration_seconds_sum", by_stage, "stage")
    passed = p.rate("ordercast_stage_duration_seconds_count", by_stage, "stage")
    cpu = p.rate("process_cpu_seconds_total", f'job="ordercast", {p.NODE}')
    return [
        p.lines(
            "Publish latency",
            "From the first message of an envelope accepted to its receipts: what clients wait. Dots are traces "
            "that were kept.",
            p.SECONDS,
            p.quantiles("ordercast_publish_duration_seconds", chosen, exemplars=True),
            (0.5, 2),
            width=8,
        ),
        p.lines(
            "Order lag, 99th percentile by group",
            "From accepted at the gateway to delivered at a replica, over all replicas of the group, by two wall "
            "clocks.",
            p.SECONDS,
            [p.query(f"group:ordercast_delivery_lag_seconds:p99{{{p.GROUP}}}", "{{domain}}/{{group}}")],
            (0.5, 2),
            width=8,
        ),
        p.lines(
            "Where the time goes",
            "The mean time of each stage, one on the other. Stages at different replicas overlap, so the sum is "
            "no latency; the shares are what to look at.",
            p.SECONDS,
            [
                p.query(
                    f"{took} / ({passed} > 0)",
                    "{{stage}}",
                )
            ],
            width=8,
            stacked=True,
        ),
        p.lines(
            "Messages with a receipt",
            "Messages that clients got receipts for, by domain.",
            p.MESSAGES,
            [p.query(p.rate("ordercast_publish_messages_total", f"{p.DOMAIN}, {p.NODE}", "domain"), "{{domain}}")],
            width=8,
        ),
        p.lines(
            "Refused, by reason",
            "Requests that gateways refused before they stored anything. `resource_exhausted` is back-pressure "
            "and does its work; `unavailable` is a group without a majority or without room. All else is what "
            "clients did wrong, and no alert counts it.",
            p.REQUESTS,
            [
                p.query(
                    p.or_none(
                        p.rate("ordercast_publish_refused_total", f"{p.DOMAIN}, {p.NODE}", "domain, reason"),
                        "reason",
                    ),
                    "{{domain}} {{reason}}",
                )
            ],
            width=8,
        ),
        p.lines(
            "Processor time per message",
            "What all nodes together compute, for each message that got its receipt, whatever they compute it "
            "for. It is high where there is hardly any load.",
            p.SECONDS,
            [p.query(f"{cpu} / ({p.rate('ordercast_publish_messages_total', p.NODE)} > 0)", "per message")],
            width=8,
        ),
    ]


def load() -> list:
    messages = p.rate("ordercast_publish_messages_total", f"{p.DOMAIN}, {p.NODE}", "domain")
    envelopes = p.rate("ordercast_publish_envelopes_total", f"{p.DOMAIN}, {p.NODE}", "domain")
    return [
        p.lines(
            "Messages in an envelope",
            "Messages that are ordered together. They are more under load: it is what makes load cheap.",
            p.COUNT,
            [p.query(f"{messages} / ({envelopes} > 0)", "{{domain}}")],
            width=8,
        ),
        p.lines(
            "Processor time by process",
            "1 is one core. A node is one event loop: close to 1, it is what limits.",
            p.COUNT,
            [
                p.query(
                    p.rate("process_cpu_seconds_total", f'job=~"ordercast.*", {p.NODE}', "instance"),
                    "{{instance}}",
                )
            ],
            (0.8, 0.95),
            width=8,
        ),
        p.lines(
            "Memory by process",
            "What is resident. It includes pages of the store that happen to be in memory, which the system "
            "takes back.",
            p.BYTES,
            [
                p.query(
                    f'sum by (instance) (process_resident_memory_bytes{{job=~"ordercast.*", {p.NODE}}})',
                    "{{instance}}",
                )
            ],
            width=8,
        ),
        p.lines(
            "Clients and subscriptions",
            "Clients that publish, and subscriptions that are open, by gateway.",
            p.COUNT,
            [
                p.query(f"sum by (instance) (ordercast_clients{{{p.NODE}}})", "{{instance}} clients"),
                p.query(
                    f"sum by (instance) (ordercast_subscriptions{{{p.NODE}}})",
                    "{{instance}} subscriptions",
                    ref="B",
                ),
            ],
            width=8,
        ),
        p.lines(
            "Messages to subscribers",
            "What gateways sent to subscribers.",
            p.MESSAGES,
            [p.query(p.rate("ordercast_subscribe_messages_total", p.NODE, "instance"), "{{instance}}")],
            width=8,
        ),
        p.lines(
            "Waiting at gateways",
            "Requests that are accepted and in no envelope yet, and envelopes without all their receipts.",
            p.COUNT,
            [
                p.query(
                    f"sum by (instance) (ordercast_publish_waiting{{{p.DOMAIN}, {p.NODE}}})",
                    "{{instance}} requests",
                ),
                p.query(
                    f"sum by (instance) (ordercast_publish_open{{{p.DOMAIN}, {p.NODE}}})",
                    "{{instance}} envelopes",
                    ref="B",
                ),
            ],
            width=8,
        ),
        p.lines(
            "Credits",
            "Messages that a client may have without a receipt, as it is told when it connects. They fall under "
            "pressure.",
            p.COUNT,
            [p.query(f"ordercast_publish_credits{{{p.NODE}}}", "{{instance}}")],
            width=8,
        ),
    ]


def running() -> list:
    return [
        p.lines(
            "Processes by version",
            "How many processes run which version, and the level that all nodes of their cluster understand. Two "
            "lines for longer than an upgrade takes: somebody was left behind.",
            p.COUNT,
            [
                p.query(
                    "count by (cluster, namespace, release, cluster_id, version, level) (ordercast_info)",
                    "{{namespace}}/{{release}} {{cluster_id}} {{version}} level {{level}}",
                )
            ],
        ),
        p.lines(
            "Time left of certificates",
            "Of each process, the share of the certificate's time that is left. Without TLS there is none, and "
            "it jumps up when somebody renews one.",
            p.SHARE,
            [
                p.query(
                    p.or_none(
                        f"ordercast_certificate_left_seconds{{{p.NODE}}}"
                        f" / ordercast_certificate_lifetime_seconds{{{p.NODE}}}",
                        "instance",
                    ),
                    "{{instance}} {{towards}}",
                )
            ],
            (0.03, 0.15),
            low_is_bad=True,
        ),
    ]
