"""A dataset function that runs a query is refused; one that only describes a query is not."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from headwater.errors import ActionInDefinition
from headwater_spark.facade.action_guard import install_action_guard, no_actions

# Quick where a session is there: they run each time.

ACTIONS = [
    "spark.range(3).collect()",
    "spark.range(3).count()",
    "spark.range(3).toPandas()",
    "spark.range(3).first()",
    "spark.range(3).head(1)",
    "spark.range(3).take(1)",
    "spark.range(3).show()",
    "spark.range(3).isEmpty()",
    "spark.range(3).toLocalIterator()",
    "spark.range(3).foreach(print)",
    "spark.range(3).write.save('/nowhere')",
    "spark.range(3).write.format('delta').mode('append').saveAsTable('x')",
    "spark.range(3).write.json('/nowhere')",
    "spark.range(3).writeTo('x').append()",
    "spark.readStream.format('rate').load().writeStream.start('/nowhere')",
    "spark.readStream.format('rate').load().writeStream.toTable('x')",
    "spark.readStream.schema('id INT').json(LANDING).count()",
]


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_is_refused(pipeline, action: str):
    """Each action is refused at the user's line, by its name, and nothing runs or is written."""
    case = pipeline(f"@dp.table\ndef bronze():\n    x = {action}\n    return spark.range(1)\n")
    with pytest.raises(ActionInDefinition) as caught:
        case.manifest()
    assert caught.value.where == case.line_of(action)
    called = action.rpartition("(")[0].rpartition(".")[2]
    assert f"{called}()" in caught.value.what
    assert "Return the DataFrame" in caught.value.remedy
    assert case.nothing_written()


LOOKS_LIKE_A_QUERY = [
    ("spark.range(3).groupBy('id').pivot('id').count()", "pivot", '.pivot(\'id\', ["a", "b"])'),
    ("spark.range(3).crosstab('id', 'id')", "crosstab", "pivot"),
    ("spark.range(3).stat.approxQuantile('id', [0.5], 0.1)", "approxQuantile", "percentile_approx"),
    ("spark.range(3).corr('id', 'id')", "corr", "F.corr"),
    ("spark.range(3).rdd.map(list)", "rdd", "mapInPandas"),
    ("spark.range(3).toJSON()", "toJSON", "to_json"),
    ("spark.range(3).transpose()", "transpose", "unpivot"),
    ("spark.range(3).inputFiles()", "inputFiles", "_metadata.file_path"),
    ("spark.catalog.clearCache()", "clearCache", "other flows"),
    ("spark.stop()", "stop", "other flows"),
]


@pytest.mark.parametrize(("action", "name", "remedy"), LOOKS_LIKE_A_QUERY)
def test_what_looks_like_a_part_of_a_query(pipeline, action: str, name: str, remedy: str):
    """What runs a job to know its columns, or acts on the session, is refused with the form that works."""
    case = pipeline(f"@dp.table\ndef bronze():\n    x = {action}\n    return spark.range(1)\n")
    with pytest.raises(ActionInDefinition) as caught:
        case.manifest()
    assert caught.value.where == case.line_of(action)
    assert name in caught.value.what
    assert remedy in caught.value.remedy


DESCRIPTIONS = [
    "spark.range(3).groupBy('id').pivot('id', [1, 2]).count()",
    "spark.range(3).describe()",
    "spark.range(3).summary()",
    "spark.range(3).freqItems(['id'])",
    "spark.range(3).randomSplit([0.5, 0.5])[0]",
    "spark.range(3).groupBy('id').count()",
    "spark.range(3).groupBy().agg(F.count('*'), F.first('id'))",
    "spark.range(3).limit(2).cache()",
    "spark.range(3).agg(F.collect_list('id'))",
    "spark.range(3).hint('broadcast')",
    "spark.createDataFrame([(1, 'a')], ['id', 'name'])",
    "spark.range(3).withColumn('count', F.lit(1)).select('count')",
]


@pytest.mark.parametrize("query", DESCRIPTIONS)
def test_a_description_is_not(pipeline, query: str):
    """Transformations that only sound like actions are allowed."""
    case = pipeline(f"@dp.table\ndef bronze():\n    return {query}\n")
    assert case.manifest().dataset("bronze").columns


def test_actions_outside_a_function(pipeline):
    """At the top of a source an action is allowed: it looks at real data, and runs once."""
    case = pipeline("N = spark.range(3).count()\n\n@dp.table\ndef bronze():\n    return spark.range(N)\n")
    assert case.manifest().dataset("bronze").columns


def test_the_guard_ends_with_its_block(spark: SparkSession):
    """Outside a dataset function the methods are Spark's own again, also after a refusal."""
    install_action_guard()
    install_action_guard()
    with pytest.raises(ActionInDefinition), no_actions("x"):
        spark.range(3).count()
    assert spark.range(3).count() == 3
    assert spark.range(3).groupBy().count().collect()[0][0] == 3
