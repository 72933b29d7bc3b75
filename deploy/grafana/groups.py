"""Groups and views: who is there, who can take messages, what changes."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from deploy.grafana import panels as p

UID = "ordercast-groups"


def build() -> Dashboard:
    board = p.board(UID, "groups and views", "Which groups take messages, whom they consist of, and what changes.")
    board = p.row(board, "Groups", *availability())
    board = p.row(board, "Views and nodes", *views())
    return p.row(board, "Logs", *logs())


def availability() -> list:
    return [
        p.states(
            "Which groups take messages",
            "Whether gateways believe that a majority of the group's replicas is up.",
            p.query(f"max by (domain, group) (ordercast_group_available{{{p.GROUP}}})", "{{domain}}/{{group}}"),
            {0: ("no quorum", p.RED), 1: ("available", p.GREEN)},
        ),
        p.lines(
            "Replicas in the view",
            "Members of the group's view, or configuration, as the one who knows the most has it.",
            p.COUNT,
            [
                p.query(
                    f"max by (domain, group) (ordercast_view_members{{{p.GROUP}, {p.NODE}}})",
                    "{{domain}}/{{group}}",
                )
            ],
            width=6,
        ),
        p.lines(
            "Members that are missing",
            "Members that the group should have and that are down, or lost what they had, as the gateway that is "
            "most confident sees it.",
            p.COUNT,
            [
                p.query(
                    f"min by (domain, group) (ordercast_group_missing{{{p.GROUP}}})",
                    "{{domain}}/{{group}}",
                )
            ],
            (1, 2),
            width=6,
        ),
    ]


def views() -> list:
    return [
        p.lines(
            "View numbers",
            "A step is a change of members. Many steps in a short time are a process on the edge.",
            p.COUNT,
            [
                p.query(
                    f"max by (domain, group) (ordercast_view_current{{{p.GROUP}, {p.NODE}}})",
                    "{{domain}}/{{group}}",
                )
            ],
            width=8,
        ),
        p.lines(
            "Changes of views in 15 minutes",
            "By group. More than six is told as an alert.",
            p.COUNT,
            [
                p.query(
                    f"max by (domain, group) (changes(ordercast_view_current{{{p.GROUP}, {p.NODE}}}[15m]))",
                    "{{domain}}/{{group}}",
                )
            ],
            (3, 6),
            width=8,
        ),
        p.lines(
            "Views that processes have heard of",
            "Changes that each process counted since it began; those before its start are not among them.",
            p.COUNT,
            [
                p.query(
                    p.or_none(
                        f"sum by (instance) (ordercast_view_changes_total{{{p.GROUP}, {p.NODE}}})", "instance"
                    ),
                    "{{instance}}",
                )
            ],
            width=8,
        ),
        p.lines(
            "Nodes",
            "Processes that are registered and not over, and those of them that are suspected to be down.",
            p.COUNT,
            [
                p.query("max(ordercast_nodes)", "registered"),
                p.query("max(ordercast_nodes_suspected)", "suspected", ref="B"),
            ],
            width=8,
        ),
        p.lines(
            "Suspicions, by node",
            "How often each node came to be suspected. Once is a crash or a restart; again and again is a node "
            "that is too slow, or a network that loses.",
            p.COUNT,
            [p.query(p.or_none("max by (node) (ordercast_suspicions_total)", "node"), "{{node}}")],
            width=8,
        ),
        p.lines(
            "Connections that began anew",
            "Between processes. Each time what was on its way is said again.",
            p.PER_SECOND,
            [p.query(p.rate("ordercast_peer_resets_total", p.NODE, "instance"), "{{instance}}")],
            width=8,
        ),
        p.states(
            "Who leads membership",
            "Each membership node as it knows it. Nobody for more than a few seconds: nothing can be changed, and "
            "what is suspected stays so. Two at once is one that has not heard yet.",
            p.query("max by (instance) (ordercast_membership_leading)", "{{instance}}"),
            {0: ("follows", p.BLUE), 1: ("leads", p.GREEN)},
        ),
    ]


def logs() -> list:
    chosen = f"{p.GROUP}, {p.NODE}"
    return [
        p.lines(
            "Deliveries by group",
            "Messages that the replicas of each group delivered, all replicas together.",
            p.MESSAGES,
            [
                p.query(
                    p.rate("ordercast_delivery_messages_total", chosen, "domain, group"), "{{domain}}/{{group}}"
                )
            ],
            width=8,
        ),
        p.lines(
            "Envelopes in the logs",
            "How many envelopes each replica's log has had. Lines of one group that part are a replica that is "
            "behind.",
            p.COUNT,
            [p.query(f"ordercast_delivery_position{{{chosen}}}", "{{domain}}/{{group}} {{instance}}")],
            width=8,
        ),
        p.lines(
            "Between the longest and the shortest log",
            "Of each group, in envelopes. It is a little above none under load, and falls back; a newcomer "
            "catches up.",
            p.COUNT,
            [p.query(f"group:ordercast_delivery_position:spread{{{p.GROUP}}}", "{{domain}}/{{group}}")],
            width=8,
        ),
        p.lines(
            "Cursors behind, in messages",
            "Messages of the group that the consumer of each cursor has not acknowledged. A line that rises "
            "steadily is a consumer that is gone, or too slow.",
            p.COUNT,
            [
                p.query(
                    p.or_none(f"max by (domain, group, cursor) (ordercast_cursor_lag{{{p.GROUP}}})", "cursor"),
                    "{{domain}}/{{group}} {{cursor}}",
                )
            ],
        ),
        p.lines(
            "Cursors behind, in time",
            "How old the oldest message is that the consumer of each cursor has not acknowledged. Above the "
            "group's retention it is lost to that consumer.",
            p.SECONDS,
            [
                p.query(
                    p.or_none(
                        f"max by (domain, group, cursor) (ordercast_cursor_age_seconds{{{p.GROUP}}})", "cursor"
                    ),
                    "{{domain}}/{{group}} {{cursor}}",
                )
            ],
            (600, 3600),
        ),
    ]
