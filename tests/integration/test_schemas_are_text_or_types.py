"""A schema in a declaration is text or a type."""

from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from headwater_spark.plans.schemas import plain_schema

# Quick where a session is there: they run each time.


@pytest.mark.usefixtures("spark")
def test_a_schema_as_text_or_type():
    """Both spellings of a schema mean the same, none stays none."""
    assert plain_schema("id INT, name STRING", None) == StructType(
        [StructField("id", IntegerType()), StructField("name", StringType())]
    )
    one = StructType([StructField("id", IntegerType())])
    assert plain_schema(one, None) == one
    assert plain_schema(None, None) is None
