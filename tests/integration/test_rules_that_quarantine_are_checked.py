"""Rules that quarantine or compare keys are checked with the graph: what can't be meant is refused before a row is read."""

from __future__ import annotations

import pytest

from headwater.errors import InvalidExpectation

pytestmark = pytest.mark.usefixtures("adaptive")

SCHEMA = "id INT, amount INT, age INT"
REFUSED = {
    "on a view": (
        '@dp.temporary_view\n@dp.expect_or_quarantine("r", "id > 0")\ndef v():\n    return spark.range(3)\n',
        "is a view",
    ),
    "on an aggregation": (
        f'@dp.table\n@dp.expect_or_quarantine("r", "count > 0")\ndef t():\n    return spark.readStream.schema("{SCHEMA}").json(LANDING).groupBy("id").count()\n',
        "running aggregation",
    ),
    "a key that is no column": (
        '@dp.materialized_view\n@dp.expect_unique("nope")\ndef v():\n    return spark.range(3)\n',
        "'nope'",
    ),
    "a key that can't be compared": (
        '@dp.materialized_view\n@dp.expect_unique("m")\ndef v():\n    return spark.range(3).select(F.create_map("id", "id").alias("m"))\n',
        "can't be compared",
    ),
    "an action that is none": (
        '@dp.materialized_view\n@dp.expect_unique("id", action="keep")\ndef v():\n    return spark.range(3)\n',
        "action='keep'",
    ),
    "a name that is taken": (
        '@dp.materialized_view\n@dp.expect_or_quarantine("unreadable_file", "id > 0")\ndef v():\n    return spark.range(3)\n',
        "is taken",
    ),
    "one name in two arguments": (
        'dp.create_streaming_table("t", expect_all={"r": "true"}, expect_all_or_quarantine={"r": "true"})\n',
        "given twice",
    ),
    "a function in Python": (
        'spark.udf.register("odd", lambda x: True, "boolean")\n@dp.materialized_view\n@dp.expect_or_quarantine("r", "odd(id)")\ndef v():\n    return spark.range(3)\n',
        "Python function",
    ),
}


@pytest.mark.parametrize(("source", "said"), REFUSED.values(), ids=REFUSED)
def test_what_validate_refuses(pipeline, source: str, said: str):
    """Each is refused before anything is written, with the line of the rule."""
    case = pipeline(source)
    with pytest.raises(InvalidExpectation) as caught:
        case.manifest()
    assert said in caught.value.what
    assert caught.value.where == case.line_of(
        "dp.expect_" if "@dp.expect_" in source else "dp.create_streaming_table"
    )
    assert case.nothing_written()
