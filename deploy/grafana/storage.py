"""Consensus and storage: votes, disks, frames between processes, and what each process has before it."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from deploy.grafana import panels as p

UID = "ordercast-storage"
COMMIT = "ordercast_storage_commit_duration_seconds"
FRAME = "ordercast_frame_size_bytes"


def build() -> Dashboard:
    board = p.board(UID, "consensus and storage", "What agreement and disks cost, and what waits in each process.")
    board = p.row(board, "Disks", *disks())
    board = p.row(board, "Consensus", *consensus())
    board = p.row(board, "Between processes", *frames())
    return p.row(board, "What leaves for telemetry", *telemetry())


def disks() -> list:
    return [
        p.heat(
            "Commits",
            "How long commits to the disk took, with their syncs. Every receipt waits for those of a majority.",
            p.SECONDS,
            COMMIT,
            p.NODE,
            exemplars=False,
        ),
        p.lines(
            "Commits by node, 99th percentile",
            "A disk that is slower than the others shows here, before it shows in latency: a majority is enough.",
            p.SECONDS,
            [p.query(p.quantile(0.99, COMMIT, p.NODE, "instance"), "{{instance}}")],
            (0.1, 0.5),
        ),
        p.lines(
            "Commits",
            "Transactions that were synced. With more load they grow rather than become more.",
            p.PER_SECOND,
            [p.query(p.rate(f"{COMMIT}_count", p.NODE, "instance"), "{{instance}}")],
            width=8,
        ),
        p.lines(
            "Room that is left",
            "On the disk of the data directory, or in the store, whichever is less.",
            p.BYTES,
            [p.query(f"ordercast_storage_free_bytes{{{p.NODE}}}", "{{instance}}")],
            (1 << 30, 10 << 30),
            low_is_bad=True,
            width=8,
        ),
        p.states(
            "Nodes that take nothing new",
            "While a disk is full a node finishes what it has, and takes nothing new.",
            p.query(f"ordercast_storage_read_only{{{p.NODE}}}", "{{instance}}"),
            {0: ("takes", p.GREEN), 1: ("full", p.RED)},
            width=8,
        ),
    ]


def consensus() -> list:
    chosen = f"{p.DOMAIN}, {p.NODE}"
    decisions = "ordercast_consensus_decisions_total"
    all_ = p.rate(decisions, chosen, "domain")
    voted = p.rate(decisions, f'{chosen}, path="voted"', "domain")
    return [
        p.lines(
            "Decisions, by how they were found",
            "implied: the stamps left no choice, and nobody voted. voted: acceptors were asked, a round more.",
            p.ENVELOPES,
            [p.query(p.rate(decisions, chosen, "path"), "{{path}}")],
            width=8,
            stacked=True,
        ),
        p.lines(
            "Share of decisions that needed a vote",
            "It rises when a replica is down or slow, for then not all stamps come in time.",
            p.SHARE,
            [
                p.query(
                    f"({voted} or {all_} * 0) / ({all_} > 0)",
                    "{{domain}}",
                )
            ],
            width=8,
        ),
        p.lines(
            "Rounds of votes",
            "How often acceptors were asked to vote on a number. More rounds than decisions: several "
            "coordinators compete.",
            p.PER_SECOND,
            [
                p.query(
                    p.or_none(p.rate("ordercast_consensus_rounds_total", chosen, "instance"), "instance"),
                    "{{instance}}",
                )
            ],
            width=8,
        ),
    ]


def frames() -> list:
    return [
        p.heat(
            "Frame sizes",
            "Frames between processes. They grow with load by themselves: what is there goes together.",
            p.BYTES,
            FRAME,
            f'{p.NODE}, direction="sent"',
            exemplars=False,
        ),
        p.lines(
            "Bytes between processes",
            "What each process sends to others, and receives.",
            p.BYTES_PER_SECOND,
            [p.query(p.rate(f"{FRAME}_sum", p.NODE, "instance, direction"), "{{instance}} {{direction}}")],
        ),
        p.lines(
            "Frames",
            "How many frames each process sends and receives: most of what a message costs when there are few.",
            p.PER_SECOND,
            [p.query(p.rate(f"{FRAME}_count", p.NODE, "instance, direction"), "{{instance}} {{direction}}")],
            width=6,
        ),
        p.lines(
            "Queues to peers",
            "What waits to be written to a peer. Beyond peer_queue_bytes_max the connection begins anew.",
            p.BYTES,
            [p.query(f"ordercast_peer_queue_bytes{{{p.NODE}}}", "{{instance}} to {{peer}}")],
            width=6,
        ),
        p.lines(
            "Events that wait in a process",
            "Events that no machine has been given yet, and effects that wait for the disk.",
            p.COUNT,
            [p.query(f"ordercast_host_waiting{{{p.NODE}}}", "{{instance}}")],
            width=6,
        ),
        p.lines(
            "Inputs that were refused",
            "What peers sent that they must not send. Anything that goes on is two versions that do not fit, or "
            "a fault.",
            p.PER_SECOND,
            [
                p.query(
                    p.or_none(p.rate("ordercast_inputs_refused_total", p.NODE, "instance, reason"), "reason"),
                    "{{instance}} {{reason}}",
                )
            ],
            width=6,
        ),
    ]


def telemetry() -> list:
    return [
        p.lines(
            "Records sent",
            "Records that the telemetry service has taken from each process, by signal.",
            p.RECORDS,
            [
                p.query(
                    p.or_none(p.rate("ordercast_telemetry_sent_total", p.NODE, "instance, signal"), "signal"),
                    "{{instance}} {{signal}}",
                )
            ],
        ),
        p.lines(
            "Records dropped",
            "Records that were given up because the telemetry service was away, or did not take them. Ordering "
            "does not wait for it; the audit has a gap.",
            p.RECORDS,
            [
                p.query(
                    p.or_none(p.rate("ordercast_telemetry_dropped_total", p.NODE, "instance, signal"), "signal"),
                    "{{instance}} {{signal}}",
                )
            ],
            (1, 100),
        ),
    ]
