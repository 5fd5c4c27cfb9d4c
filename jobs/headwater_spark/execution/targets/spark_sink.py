"""Write rows of a bounded read to one of Spark's own sinks."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from headwater.definitions.sink import Sink
from headwater_spark.delta_writes.batch_transaction import BatchTransaction


@dataclass(frozen=True)
class SparkSink:
    """Appends to a sink without transactions: at least once."""

    sink: Sink
    passes: int = 1

    def has(self, transaction: BatchTransaction) -> bool:  # noqa: ARG002 - the protocol's
        """The sink does not say."""
        return False

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:  # noqa: ARG002
        """Append the rows."""
        rows.write.format(self.sink.format).mode("append").options(**self.sink.options).save()
