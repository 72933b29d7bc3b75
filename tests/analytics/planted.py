"""A hundred seconds of a cluster with everything wrong that the job has to find, and the job's run over it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ordercast.analytics.job import Job
from ordercast.analytics.sources import spool
from ordercast.analytics.spool_server import MemorySpool, served
from ordercast.analytics.synthetic import MS, SECOND, Cluster, Plan, poisoned, repeated, unreadable
from ordercast.analytics.tables import Tables

PLAN = Plan(3000, seed=3, rate=30, traced_every=3, slow="n3", skew_ns={"n2": 40 * MS}, unavailable=(20, 26))
REPEATED = 1500


@dataclass(frozen=True, slots=True)
class Planted:
    tables: Tables
    checkpoints: Path
    cluster: Cluster
    #: Before anything was poisoned.
    clean: pa.Table
    #: A position in group a whose envelope has another key elsewhere.
    other_key: int

    def read(self, name: str) -> pd.DataFrame:
        found = self.tables.read(name)
        return pd.DataFrame() if found is None else found.to_pandas()


def planted(spark: Any, folder: Path) -> Planted:
    cluster = Cluster(PLAN)
    other_key = plant(cluster)
    clean = cluster.table()
    job = Job.at(spark, folder)
    with served(MemorySpool(spoiled(clean), 7000)) as address:
        job.run_once(spool(spark, address, 20_000, 2))
    return Planted(job.tables, job.checkpoints, cluster, clean, other_key)


def plant(cluster: Cluster) -> int:
    """Breaks the order in five ways."""
    rows = cluster.deliveries
    rows.swap(rows.where("a", "n3", 100), rows.where("a", "n3", 101))
    rows.first_offset[rows.where("c", "n2", 300)] += 1
    # The first from 700 on that also goes to another group.
    elsewhere = set(rows.envelope[rows.group != "a"].tolist())
    in_a = (rows.group == "a") & (rows.position >= 700)
    other_key = int(
        min(p for p, e in zip(rows.position[in_a], rows.envelope[in_a], strict=True) if e in elsewhere)
    )
    rows.number[(rows.group == "a") & (rows.position == other_key)] += 1
    again = rows.where("d", "n1", 77)
    rows = rows.repeated(again)
    rows.time_ns[-1] += 5 * MS
    rows.received_ns[-1] += 60 * MS
    rows = rows.without(rows.where("b", "n2", 500))
    # The last of a range of positions.
    cluster.deliveries = rows.without(rows.where("c", "n1", 1023))
    return other_key


def sent_twice(table: pa.Table) -> pa.Table:
    """Some requests, as Kafka may have them."""
    return repeated(table, 5000, REPEATED, 3 * SECOND)


def spoiled(table: pa.Table) -> pa.Table:
    """With records that nobody can use."""
    kinds = np.array(table.column("kind").to_pylist())
    delivery = int(np.flatnonzero(kinds == "delivery")[2000])
    table = poisoned(table, delivery, position=None)
    table = poisoned(table, delivery, schema_version=99)
    table = poisoned(table, delivery, envelope=b"short")
    table = poisoned(table, delivery, kind="surprise")
    return unreadable(table, delivery, "malformed OTLP: cut short")
