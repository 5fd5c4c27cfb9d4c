"""Spark's messages name the line of a user's operation on a column, and none of the engine's."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

import headwater_spark

ENGINE = Path(headwater_spark.__path__[0]) / "rules" / "judgement.py"


def divided(file: str) -> Column:
    """A division by zero that is written in the third line of a file."""
    names: dict[str, Column] = {"one": F.col("id"), "none": F.lit(0)}
    exec(compile("\n\ncolumn = one / none\n", file, "exec"), names)
    return names["column"]


@pytest.mark.parametrize(("file", "named"), [("shop/sales.py", True), (str(ENGINE), False)])
def test_whose_line_is_in_the_message(spark: SparkSession, file: str, named: bool):
    """A user finds what to mend by it; looking for a line takes a column of the engine seven calls of the JVM, for nothing."""
    with pytest.raises(ArithmeticException) as caught:
        spark.range(1).select(divided(file)).collect()
    assert (f"{file}:3" in str(caught.value)) is named
