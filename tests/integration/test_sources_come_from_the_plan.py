"""The sources of a flow come from its plan: whatever the spelling, as observers need them, and without secrets."""

from __future__ import annotations

import pytest

from headwater.definitions.source import ANY_FILE_AGE, SourceKind
from headwater.graph.manifest import SourceEntry

# Quick where a session is there: they run each time.


def sources(case, flow: str = "x") -> tuple[SourceEntry, ...]:
    """The sources of a flow."""
    return next(entry for entry in case.manifest().flows if entry.name == flow).sources


FILES = [
    'spark.readStream.schema("id INT").json(LANDING)',
    'spark.readStream.format("json").schema("id INT").load(LANDING)',
    'spark.readStream.schema("id INT").load(LANDING, format="json")',
    'spark.readStream.format("org.apache.spark.sql.json").schema("id INT").option("path", LANDING).load()',
    'spark.read.schema("id INT").json(LANDING)',
    'spark.read.schema("id INT").json("file://" + LANDING)',
    'spark.sql("select * from json.`" + LANDING + "`")',
]


@pytest.mark.parametrize("read", FILES)
def test_files(pipeline, read: str):
    """A folder of JSON files is a source of files, by whichever call it is read."""
    case = pipeline(f"@dp.table\ndef x():\n    return {read}\n")
    case.land([{"id": 1}])
    (source,) = sources(case)
    assert (source.kind, source.path, source.format) == (SourceKind.FILES, str(case.landing), "json")
    assert source.streaming == ("readStream" in read)


def test_options_that_choose_files(pipeline):
    """Options that say which files belong to a source are kept, others are not; files of any age do, as Spark is asked."""
    case = pipeline(
        """
@dp.table
def x():
    reader = spark.readStream.option("pathGlobFilter", "*.csv").option("RECURSIVEFILELOOKUP", True).option("sep", ";")
    return reader.schema("id INT").csv(LANDING)
"""
    )
    (source,) = sources(case)
    assert source.format == "csv"
    chosen = {"pathGlobFilter": "*.csv", "recursiveFileLookup": "true"}
    assert source.options == {**chosen, "maxFileAge": ANY_FILE_AGE}


def test_kafka(pipeline):
    """A topic is a source with where to find it and nothing secret, as a stream and as a batch."""
    case = pipeline(
        """
def topic(reader):
    options = {"kafka.bootstrap.servers": "127.0.0.1:9", "subscribe": "orders", "kafka.security.protocol": "SASL_SSL",
               "kafka.sasl.jaas.config": "org.x.PlainLoginModule required password='hunter2';", "startingOffsets": "earliest"}
    return reader.format("kafka").options(**options).load().select("value")

@dp.table
def x():
    return topic(spark.readStream)

@dp.table
def y():
    return topic(spark.read)
"""
    )
    (stream,) = sources(case)
    assert (stream.kind, stream.name, stream.streaming) == (SourceKind.KAFKA, "orders", True)
    assert stream.options["kafka.bootstrap.servers"] == "127.0.0.1:9"
    assert stream.options["startingOffsets"] == "earliest"
    assert [source.streaming for source in sources(case, "y")] == [False]
    assert "hunter2" not in case.manifest().to_json()


def test_tables_inside_and_outside_of_the_pipeline(pipeline, spark):
    """Datasets are sources by name; other Delta tables by their place, read by path, by name, and as a change feed."""
    case = pipeline(
        """
@dp.table
def bronze():
    return spark.readStream.schema("id INT").json(LANDING)

@dp.table
def x():
    path = spark.read.format("delta").load(LANDING + "/elsewhere")
    named = spark.read.table("other.prices")
    return dp.read_stream("bronze").join(path, "id").join(named, "id").join(spark.sql("select id from other.prices"), "id")

@dp.table
def changes():
    return spark.readStream.option("readChangeFeed", True).format("delta").load(LANDING + "/elsewhere").select("id")
"""
    )
    for path in (case.landing / "elsewhere", case.warehouse / "other" / "prices"):
        spark.range(1).selectExpr("cast(id as int) as id").write.format("delta").option(
            "delta.enableChangeDataFeed", "true"
        ).save(str(path))
    listed = [(source.kind, source.name, source.location, source.streaming) for source in sources(case)]
    assert listed == [
        (SourceKind.DATASET, "bronze", "shop/bronze", True),
        (SourceKind.DELTA, "", str(case.landing / "elsewhere"), False),
        (SourceKind.DELTA, "", "other/prices", False),
    ]
    (feed,) = sources(case, "changes")
    assert (feed.kind, feed.streaming, feed.options) == (SourceKind.DELTA, True, {"readChangeFeed": "true"})


def test_views_are_looked_through(pipeline):
    """A flow over a view has the view's sources, each once."""
    case = pipeline(
        """
@dp.view
def v():
    return spark.read.schema("id INT").json(LANDING)

@dp.table
def x():
    return dp.read("v").union(dp.read("v")).union(spark.range(3).selectExpr("int(id)"))
"""
    )
    assert [source.kind for source in sources(case)] == [SourceKind.FILES]
    assert next(flow for flow in case.manifest().flows if flow.name == "x").inputs == ("v",)


@pytest.mark.parametrize(
    ("query", "depends"),
    [
        ("spark.range(1).select(F.current_date())", True),
        ("spark.range(1).select(F.rand())", True),
        ("spark.sql('select now()')", True),
        (
            """spark.sql("select 1 x where exists (select 1 where localtimestamp() > timestamp_ntz'2020-01-01')")""",
            True,
        ),
        ("""spark.sql("with d as (select curdate() c, unix_timestamp() u) select c from d")""", True),
        ("""spark.sql("select (select count(*) from range(9) where rand() < 0.5) r")""", True),
        ("""spark.sql("select date'2026-01-01' < 'today' t, cast('x' as string) u")""", True),
        ("""spark.sql("select cast(' Tomorrow ' as timestamp) t")""", True),
        ("""spark.sql("select to_date('today') d")""", True),
        ("""spark.sql("select to_timestamp('now') t")""", True),
        ("""spark.sql("select date'today' t")""", True),
        ("spark.range(1).select(F.lit(__import__('datetime').date.today()))", True),
        ("""spark.sql("select cast('now' as string) t, date'2026-01-01' d")""", False),
        ("spark.range(1).select(F.lit(1))", False),
        ("""spark.sql("select 1 current_total, 'now' known")""", False),
    ],
)
def test_queries_that_depend_on_the_clock(pipeline, query: str, depends: bool):
    """A materialized view whose result changes by itself is known for it."""
    case = pipeline(f"@dp.table\ndef x():\n    return {query}\n")
    assert case.manifest().flows[0].time_dependent is depends
