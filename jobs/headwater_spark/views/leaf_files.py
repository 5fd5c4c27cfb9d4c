"""Rows of a table at one version, from files that are named: Delta looks for none itself, which would take a Spark job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headwater.delta_log.file_bounds import TableFile
from headwater_spark.java_classes import OPTION, PYTHON_UTILS, java_class
from headwater_spark.views.plan_surgery import DeltaLeaf


def rows_of_files(
    session: SparkSession, leaf: DeltaLeaf, adds: Iterable[Mapping[str, Any]], label: str | None = None
) -> DataFrame:
    """The rows of files.

    Args:
        leaf: the table, at the version whose columns the rows get.
        adds: the files, as ``add`` actions.
        label: what the relation is called, to know it again in a plan; None for Delta's own word.
    """
    jvm: Any = session._jvm  # noqa: SLF001 - Delta has no public face for this
    action = java_class(jvm, "org.apache.spark.sql.delta.actions.Action")
    files = [action.fromJson(json.dumps({"add": dict(file)})) for file in adds]
    log = java_class(jvm, "org.apache.spark.sql.delta.DeltaLog").forTable(
        session._jsparkSession,  # noqa: SLF001
        str(leaf.folder),
    )
    option = java_class(jvm, OPTION)
    named = option.empty() if label is None else option.apply(label)
    seq = java_class(jvm, PYTHON_UTILS).toSeq(files)
    return DataFrame(log.createDataFrame(leaf.snapshot, seq, False, named), session)


def as_add(file: TableFile) -> dict[str, Any]:
    """A file of a version as an ``add`` action."""
    return {
        "path": file.path,
        "partitionValues": dict(file.partition),
        "size": file.bytes,
        "modificationTime": file.modified,
        "dataChange": True,
    }
