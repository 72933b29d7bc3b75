"""The columns of records, as Arrow and as Spark know them; both come from the schema of telemetry."""

from functools import cache

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from ordercast.telemetry.schema.model import load

SPAN, DELIVERY, POINT, EVENT = KINDS = ("span", "delivery", "point", "event")
#: What the telemetry service could not read comes as this, with the reason.
POISON = "poison"

_ARROW: dict[str, pa.DataType] = {
    "int64": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "double": pa.float64(),
    "list<double>": pa.list_(pa.float64()),
    "list<int64>": pa.list_(pa.int64()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}
_SPARK: dict[str, DataType] = {
    "int64": LongType(),
    "string": StringType(),
    "binary": BinaryType(),
    "double": DoubleType(),
    "list<double>": ArrayType(DoubleType()),
    "list<int64>": ArrayType(LongType()),
    "map<string,string>": MapType(StringType(), StringType()),
}


@cache
def arrow_schema() -> pa.Schema:
    return pa.schema([(column.name, _ARROW[column.type]) for column in load().columns.values()])


def spark_schema() -> StructType:
    """A new one each time: whoever adds a field changes what is there."""
    return StructType([StructField(column.name, _SPARK[column.type]) for column in load().columns.values()])


def as_records(batch: pa.RecordBatch) -> pa.RecordBatch:
    """With our columns, in their order: what is not there is null, and what we do not know is left out.

    A spool of a newer version may have more columns, and one of an older version fewer.
    """
    schema = arrow_schema()
    if batch.schema.equals(schema):
        return batch
    columns = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        column = pa.nulls(batch.num_rows, field.type) if at < 0 else batch.column(at)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
