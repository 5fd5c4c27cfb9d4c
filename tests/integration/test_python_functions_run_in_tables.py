"""Python functions over rows work in streams and in views: in Spark 4.2.0 they hang over tables without our setting."""

from __future__ import annotations

import pytest

SOURCE = """
import pandas as pd
from pyspark.sql.functions import pandas_udf, udf

import factors, lib.rounding

@udf("int")
def twice(number):
    return lib.rounding.whole(number * factors.TWO)

@pandas_udf("int")
def plus_one(numbers: pd.Series) -> pd.Series:
    return numbers + 1

def evens(frames):
    for frame in frames:
        yield frame[frame.id % 2 == 0]

@dp.table
def bronze():
    return spark.readStream.schema("id INT").json(LANDING)

@dp.table
def computed():
    return dp.read_stream("bronze").select("id", twice("id").alias("twice"), plus_one("id").alias("more"))

@dp.table
def mapped():
    return dp.read_stream("bronze").mapInPandas(evens, "id INT")

@dp.materialized_view
def view():
    rows = dp.read("computed").mapInPandas(evens, "id INT, twice INT, more INT")
    return rows.select("id", plus_one(twice("twice")).alias("n"))

@dp.materialized_view
def grouped():
    return dp.read("bronze").groupBy((F.col("id") % 2).alias("odd")).applyInPandas(
        lambda key, frame: pd.DataFrame({"odd": [key[0]], "ids": [frame.id.sum()]}), "odd INT, ids LONG"
    )
"""


# What a module has of the driver's stays there.
MODULES = {
    "factors.py": "TWO = 2\ndef rows():\n    return spark.table('computed')\n",
    "lib/rounding.py": "def whole(number):\n    return int(number)\n",
}


@pytest.mark.timeout(120)
def test_over_tables(pipeline):
    """A plain function that uses modules beside the sources, one over series, mapInPandas and applyInPandas, in two updates."""
    case = pipeline(SOURCE)
    for name, text in MODULES.items():
        case.write(name, text)
    case.land([{"id": number} for number in (1, 2, 3)])
    assert case.update().state == "COMPLETED"
    case.land([{"id": 4}])
    assert case.update().state == "COMPLETED"
    assert case.rows("computed") == [(1, 2, 2), (2, 4, 3), (3, 6, 4), (4, 8, 5)]
    assert case.rows("mapped") == [(2,), (4,)]
    assert case.rows("view") == [(2, 9), (4, 17)]
    assert case.rows("grouped") == [(0, 6), (1, 4)]
