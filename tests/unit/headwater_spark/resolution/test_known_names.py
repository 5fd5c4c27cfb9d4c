"""A table of the pipeline that no update has made yet is called by its name."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.dataset_name import DatasetName
from headwater.errors import SourceNotFound
from headwater_spark.resolution.known_names import rows_of_table

BRONZE = Dataset(
    "bronze", DatasetName.parse("bronze", catalog=None, schema="shop"), DatasetKind.STREAMING_TABLE
)


class SparkSays(AnalysisException):
    """An error with a condition, as Spark's has one."""

    def __init__(self, condition: str) -> None:
        super().__init__(f"[{condition}] no")
        self.condition = condition

    def getCondition(self) -> str:  # noqa: N802 - Spark's spelling
        """Its name."""
        return self.condition


def read(condition: str) -> Any:
    """What Spark raises for a table."""

    def raising() -> Any:
        raise SparkSays(condition)

    return raising


@pytest.mark.parametrize("condition", ["PATH_NOT_FOUND", "DELTA_SCHEMA_NOT_SET"])
def test_a_table_that_is_not_made_yet(condition: str) -> None:
    """Whoever updates a part is told which table has to come first, and how."""
    with pytest.raises(SourceNotFound, match="'bronze', which is read here, is not there") as raised:
        rows_of_table(BRONZE, read(condition))
    assert "--tables=bronze,..." in str(raised.value.remedy)
    assert not raised.value.transient


def test_other_errors_stay_what_they_are() -> None:
    """What is wrong with a query is Spark's to say."""
    with pytest.raises(SparkSays):
        rows_of_table(BRONZE, read("UNRESOLVED_COLUMN"))
    assert rows_of_table(BRONZE, lambda: "rows") == "rows"  # type: ignore[arg-type,return-value,comparison-overlap]
