"""A target of AUTO CDC without a pipeline around it: change events applied to it batch by batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from tests.pipeline_case import read_rows
from tests.seeds import SOAK

from headwater.definitions.change_flow import ChangeFlow
from headwater_spark.auto_cdc.apply_changes import ChangeTarget, apply_changes
from headwater_spark.auto_cdc.change_columns import ChangeColumns, change_columns
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.plans.session_settings import session_settings

# Plans of ten rows: half of the time goes into compiling them, and into a job for each of their exchanges. The soak, and tests
# of whole pipelines, run with an update's own settings.
QUICK = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.adaptive.enabled": "false"}
SCHEMA = "key INT, at INT, op STRING, name STRING, city STRING"


class Changes:
    """A target table, and change events applied to it batch by batch."""

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        flow: ChangeFlow,
        schema: Any = SCHEMA,
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.spark, self.schema = spark, schema
        self.columns: ChangeColumns = change_columns(flow, spark.createDataFrame([], schema), None)
        self.target = ChangeTarget(root / "table", root / "memory")
        creation = DeltaTable.create(spark).location(str(self.target.path))
        for name, value in properties.items():
            creation = creation.property(name, value)
        creation.addColumns(self.columns.target_schema).execute()
        self.batches = 0

    def apply(self, rows: Iterable[tuple[Any, ...]], batch: int | None = None, flow: str = "flow") -> None:
        """Apply a batch of a flow; ``batch`` repeats an earlier one."""
        self.apply_frame(self.spark.createDataFrame(list(rows), self.schema), batch, flow)

    def apply_frame(self, frame: DataFrame, batch: int | None = None, flow: str = "flow") -> None:
        """Apply a batch that Spark makes."""
        self.batches += batch is None
        number = self.batches if batch is None else batch
        metadata = json.dumps({"pipeline": "tests", "flow": flow, "epoch": 0, "batch": number})
        transaction = BatchTransaction(f"tests.{flow}@0", number, metadata)
        with session_settings(self.spark, {} if SOAK else QUICK):
            apply_changes(frame, self.columns, self.target, transaction)

    def rows(self, order: str = "1") -> list[tuple[Any, ...]]:
        """The table's rows, by key."""
        return read_rows(self.target.path, order=order)


def flow(**options: Any) -> ChangeFlow:
    """A change flow over events of SCHEMA."""
    given = {"keys": ("key",), "sequence_by": "at", "apply_as_deletes": "op = 'D'", "except_columns": ("op",)}
    return ChangeFlow("events", **{**given, **options})
