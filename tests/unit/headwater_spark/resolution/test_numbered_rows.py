"""Only a table whose rows are appended, by Delta itself, can number them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import DataType, IntegerType, LongType, StructField, StructType
from tests.unit.headwater_spark.update_parts import flow

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.definitions.output_kind import OutputKind
from headwater.errors import UnsupportedArgument
from headwater_spark.plans.output_mode import OutputMode
from headwater_spark.plans.schema_text import IDENTITY
from headwater_spark.resolution.numbered_rows import check_numbered


def checked(
    *, kind: DatasetKind = DatasetKind.STREAMING_TABLE, mode: OutputKind = OutputKind.APPEND, column: DataType | None = None,
    given: bool = False, returned: tuple[str, ...] = ("id",), action: ViolationAction = ViolationAction.DROP,
) -> None:  # fmt: skip
    """Check a table with an identity column ``n``."""
    numbers = {IDENTITY: {"start": 1, "step": 1, "given": given}}
    schema = StructType(
        [StructField("id", LongType()), StructField("n", column or LongType(), True, numbers)]
    )
    rule = Expectation("r", "id > 0", action, None)
    name = DatasetName.parse("t", catalog=None, schema="s")
    dataset = Dataset("t", name, DatasetKind.TABLE, schema=schema, expectations=(rule,))
    check_numbered(dataset, kind, flow(), OutputMode(mode), list(returned))


@pytest.mark.parametrize("more", [{}, {"given": True, "returned": ("id", "n")}, {"returned": ()}])
def test_rows_that_are_appended(more: dict[str, Any]):
    """By any flow, with numbers of its own where the declaration lets it."""
    checked(**more)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"column": IntegerType()}, "a BIGINT"),
        ({"kind": DatasetKind.MATERIALIZED_VIEW}, "only a streaming table"),
        ({"mode": OutputKind.CHANGES}, "does not append"),
        ({"mode": OutputKind.REPLACE}, "does not append"),
        ({"action": ViolationAction.QUARANTINE}, "before their commit"),
        ({"returned": ("id", "N")}, "returns it"),
    ],
)
def test_rows_that_are_not(more: dict[str, Any], why: str):
    """What would give a row another number, or several rows one, is refused with the reason and what to do."""
    with pytest.raises(UnsupportedArgument, match=why) as caught:
        checked(**more)
    assert caught.value.remedy
