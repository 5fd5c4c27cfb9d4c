"""The methods of Spark's classes that a dataset's function, or a source, may not call: what each does, and what to write instead.

Every other public method only describes a query, or answers from what the session knows. A test lists them all.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.merge import MergeIntoWriter
from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2

# They run a query, at once or when the result is used: over stand-ins the answer would be wrong.
QUERIES: dict[type, tuple[str, ...]] = {
    DataFrame: (
        "approxQuantile", "checkpoint", "collect", "corr", "count", "cov", "crosstab", "first", "foreach", "foreachPartition",
        "head", "inputFiles", "isEmpty", "localCheckpoint", "rdd", "show", "tail", "take", "toArrow", "toJSON",
        "toLocalIterator", "toPandas", "transpose",
    ),
}  # fmt: skip
# They change data, or what other queries of the session read; the top of a source may not call them either.
WRITES: dict[type, tuple[str, ...]] = {
    DataFrameWriter: ("csv", "insertInto", "jdbc", "json", "orc", "parquet", "save", "saveAsTable", "text", "xml"),
    DataFrameWriterV2: ("append", "create", "createOrReplace", "overwrite", "overwritePartitions", "replace"),
    MergeIntoWriter: ("merge",),
    Catalog: (
        "analyzeTable", "cacheTable", "clearCache", "createDatabase", "createExternalTable", "createTable", "dropDatabase",
        "dropTable", "dropView", "recoverPartitions", "truncateTable", "uncacheTable",
    ),
    SparkSession: ("interruptAll", "interruptOperation", "interruptTag", "stop"),
}  # fmt: skip
# They end a stream's definition and start it. `table` is Databricks' name of `toTable`; open Spark has no such method.
STARTS = ("start", "toTable", "table")
# What these do depends on their arguments: a cached stream, a continuous trigger, a pivot without its values, a state with arrays.
GUARDED_BY_ARGUMENT = {
    "DataFrame": ("cache", "persist"),
    "DataStreamWriter": ("foreachBatch", "format", "trigger"),
    "GroupedData": ("pivot", "applyInPandasWithState"),
}

DESCRIBE = "Return the DataFrame that describes the rows; the update runs it and writes the result."
_IN_QUERY = {
    "approxQuantile": 'df.agg(F.percentile_approx("amount", [0.5, 0.9]))',
    "corr": 'df.agg(F.corr("a", "b"))',
    "cov": 'df.agg(F.covar_samp("a", "b"))',
    "crosstab": 'df.groupBy("a").pivot("b", ["x", "y"]).count(), with the values of b',
    "inputFiles": 'the column F.col("_metadata.file_path")',
    "rdd": "df.mapInPandas(...), df.groupBy(...).applyInPandas(...) or a function under F.udf",
    "toJSON": 'df.select(F.to_json(F.struct("*")).alias("value"))',
    "transpose": "df.unpivot(...)",
}
_SESSION = "Leave it out: the session and its tables are the update's, and other flows use them."


def remedy_of(name: str, owner: type) -> str:
    """What to write instead of a guarded method."""
    if owner in (Catalog, SparkSession):
        return _SESSION
    return (
        f"Write it as a part of the query: {_IN_QUERY[name]}. {DESCRIBE}" if name in _IN_QUERY else DESCRIBE
    )
