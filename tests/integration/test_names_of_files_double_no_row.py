"""Files whose names are patterns to Spark are refused before they make it read other files twice."""

from __future__ import annotations

from pathlib import Path

from headwater.checkpoints.conditions import SourceFileNames

TABLES = """
def rows():
    return spark.readStream.schema("id INT")OPTION

@dp.table
def plain():
    return rows().json(LANDING)

@dp.table
def loaded():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT")
    return reader CLOUD.load(LANDING)
"""


def tables(limit: str = "") -> str:
    """Both tables, with a limit or without."""
    return TABLES.replace("OPTION", limit).replace(" CLOUD", limit.replace("maxFiles", "cloudFiles.maxFiles"))


def test_such_a_name_is_refused_until_it_is_changed_or_comes_alone(pipeline):
    """Nothing is read while it waits; renamed, or with a file a batch, every row comes once, on both sources."""
    case = pipeline(tables())
    case.land([{"id": 1}])
    odd = case.landing / "b [1].json"
    odd.write_text('{"id": 2}\n')
    report = case.update()
    assert isinstance(report.error, SourceFileNames), report.error
    assert report.error.exit_code == 3
    assert str(odd) in str(report.error)
    assert all(case.rows(table) == [] for table in ("plain", "loaded") if case.table(table).exists())
    odd.rename(case.landing / "b.json")
    assert case.update().state == "COMPLETED"
    assert case.rows("plain") == case.rows("loaded") == [(1,), (2,)]
    case.rewrite(tables('.option("maxFilesPerTrigger", 1)'))
    (case.landing / "c{2}.json").write_text('{"id": 3}\n')
    case.land([{"id": 4}])
    assert case.update().state == "COMPLETED"
    assert case.rows("plain") == case.rows("loaded") == [(1,), (2,), (3,), (4,)]
    case.rewrite(tables())
    case.land([{"id": 5}])
    assert case.update().state == "COMPLETED"
    assert case.rows("plain") == case.rows("loaded") == [(1,), (2,), (3,), (4,), (5,)]


def test_spark_still_reads_the_others_twice(spark, tmp_path: Path):
    """The day this fails, Spark has mended it and the refusal can go."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/b [1].json").write_text('{"id": 1}\n')
    (tmp_path / "in/c.json").write_text('{"id": 2}\n')
    stream = spark.readStream.schema("id INT").json(str(tmp_path / "in"))
    query = stream.writeStream.trigger(availableNow=True).option(
        "checkpointLocation", str(tmp_path / "checkpoint")
    )
    query.format("memory").queryName("twice").start().awaitTermination()
    assert sorted(row.id for row in spark.table("twice").collect()) == [1, 2, 2]
