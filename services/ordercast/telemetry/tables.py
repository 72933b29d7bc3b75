"""Rows as Arrow: exactly the columns of the schema, and how batches of them are written."""

import pyarrow as pa

from ordercast.telemetry.schema.model import load

TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "list<double>": pa.list_(pa.float64()),
    "list<int64>": pa.list_(pa.int64()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}
SCHEMA = pa.schema([(column.name, TYPES[column.type]) for column in load().columns.values()])

#: Rows in one batch at most: what is sent to whoever asks for one of them.
BATCH_ROWS_MAX = 16_384


def write_options() -> pa.ipc.IpcWriteOptions:
    return pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
