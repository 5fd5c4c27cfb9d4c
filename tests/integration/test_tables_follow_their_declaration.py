"""Comments, properties, clustering, partitioning, schemas and privacy of tables are what the sources say now."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from headwater.errors import FlowFailed, UnknownDataset, UnsupportedArgument

READ = 'spark.readStream.schema("id INT, name STRING, day DATE").json(LANDING)'


def source(arguments: str, kind: str = "table", query: str = READ) -> str:
    return f"@dp.{kind}({arguments})\ndef t():\n    return {query}\n"


def row(number, name="a", day="2026-01-01"):
    return {"id": number, "name": name, "day": day}


def detail(spark, case, name="t"):
    return spark.sql(f"DESCRIBE DETAIL delta.`{case.table(name)}`").collect()[0]


def test_comments_and_properties(pipeline):
    """What the source gives is set, what changes there changes, what is taken away there is taken back, and no more."""
    first = '"delta.appendOnly": "true", "team": "a", "delta.autoOptimize.optimizeWrite": "true"'
    case = pipeline(source(f'comment="one", table_properties={{{first}}}'))
    case.land([row(1)])
    assert case.update().state == "COMPLETED"
    metadata = DeltaTable(str(case.table("t"))).metadata()
    assert metadata.description == "one"
    assert {k: metadata.configuration[k] for k in ("delta.appendOnly", "team")} == {
        "delta.appendOnly": "true",
        "team": "a",
    }
    case.rewrite(source('comment="two", table_properties={"team": "b"}'))
    case.update()
    metadata = DeltaTable(str(case.table("t"))).metadata()
    assert (metadata.description, metadata.configuration["team"]) == ("two", "b")
    assert "delta.appendOnly" not in metadata.configuration
    version = case.version("t")
    case.update()
    assert case.version("t") == version
    case.rewrite(source(""))
    case.update()
    metadata = DeltaTable(str(case.table("t"))).metadata()
    assert not metadata.description
    assert "team" not in metadata.configuration


# The two kinds of table: `t` of a stream, and `v`, a view of the same files.
BOTH = ("t", "v")


def both(arguments: str) -> str:
    """A table and a view, declared alike."""
    view = source(arguments, "materialized_view", READ.replace("readStream", "read"))
    return source(arguments) + view.replace("def t()", "def v()")


def test_an_update_without_news_commits_nothing(pipeline):
    """Also where Delta keeps a property in its protocol, or under its own spelling: readers of the table see no news."""
    properties = {
        "delta.feature.timestampNtz": "supported",
        "delta.feature.invariants": "supported",
        "delta.appendonly": "true",
    }
    case = pipeline(source(f"table_properties={properties}"))
    case.land([row(1)])
    assert case.update().state == "COMPLETED"
    version = case.version("t")
    assert case.update().state == "COMPLETED"
    assert case.version("t") == version


def test_clustering(pipeline, spark):
    """cluster_by holds from the first write, follows the source, and survives appends, recomputes and full refreshes."""
    case = pipeline(both('cluster_by=["id"]'))
    case.land([row(1)])
    assert case.update().state == "COMPLETED"
    case.land([row(2)])
    case.update()
    assert [detail(spark, case, name).clusteringColumns for name in BOTH] == [["id"]] * 2
    case.rewrite(both('cluster_by=["name", "id"]'))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert [detail(spark, case, name).clusteringColumns for name in BOTH] == [["name", "id"]] * 2
    case.update(full_refresh=BOTH)
    assert [detail(spark, case, name).clusteringColumns for name in BOTH] == [["name", "id"]] * 2
    assert [len(case.rows(name)) for name in BOTH] == [2, 2]


def test_clustering_by_columns_of_any_name(pipeline, spark):
    """Names with blanks and dots are columns, and a dotted name that is none is a field of a struct; each survives a recompute."""
    columns = '"id AS `a b`", "id AS `c.d`", "named_struct(\'x\', id) AS st"'
    query = f"{READ}.selectExpr({columns})"
    arguments = 'cluster_by=["a b", "c.d", "st.x"]'
    view = source(arguments, "materialized_view", query.replace("readStream", "read"))
    case = pipeline(source(arguments, query=query) + view.replace("def t()", "def v()"))
    for number in (1, 2):
        case.land([row(number)])
        report = case.update()
        assert report.state == "COMPLETED", report.error
        for name in BOTH:
            stored = [column.replace("`", "") for column in detail(spark, case, name).clusteringColumns]
            assert stored == ["a b", "c.d", "st.x"]
    assert [len(case.rows(name)) for name in BOTH] == [2, 2]


def test_clustering_by_a_column_beyond_the_first(pipeline, spark):
    """Delta keeps ranges of 32 columns: another to cluster by is refused before the update, and taken with the property that is named."""
    wide = f'{READ}.selectExpr(*[f"id + {{n}} AS c{{n}}" for n in range(33)])'
    case = pipeline(source('cluster_by=["c32"]', query=wide))
    case.land([row(1)])
    with pytest.raises(UnsupportedArgument, match="first 32 columns") as caught:
        case.update()
    assert not case.table("t").exists()
    properties = '{"delta.dataSkippingNumIndexedCols": "33"}'
    assert 'delta.dataSkippingNumIndexedCols to "33"' in caught.value.remedy
    case.rewrite(source(f'cluster_by=["c32"], table_properties={properties}', query=wide))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert detail(spark, case).clusteringColumns == ["c32"]


def test_partitioning(pipeline):
    """partition_cols are the table's partitions; another set is refused with the way out, which works."""
    case = pipeline(source('partition_cols=["day"]'))
    case.land([row(1)])
    case.update()
    assert DeltaTable(str(case.table("t"))).metadata().partition_columns == ["day"]
    case.rewrite(source('partition_cols=["name"]'))
    report = case.update()
    assert isinstance(report.error, FlowFailed)
    assert "partition_cols" in report.error.what
    assert "--full-refresh t" in report.error.remedy
    assert case.update(full_refresh=("t",)).state == "COMPLETED"
    assert DeltaTable(str(case.table("t"))).metadata().partition_columns == ["name"]
    assert case.rows("t", "id", "1") == [(1,)]


DDL = "id INT NOT NULL COMMENT 'the key', name STRING, day DATE, year INT GENERATED ALWAYS AS (year(day)), later BIGINT"
RULE = '@dp.expect_or_drop("few", "id < 9")\n'


def of_ddl(ddl: str) -> str:
    """Both, partitioned by a column that Delta computes, with a rule."""
    return both(f'schema="{ddl}", partition_cols=["year"]').replace("@dp.", f"{RULE}@dp.")


def test_a_schema_as_ddl(pipeline):
    """Comments, NOT NULL and computed columns of the DDL are the table's, before and after a full refresh; a table can be
    partitioned by a computed one, and the rows that its rule drops are counted.
    """
    case = pipeline(of_ddl(DDL))
    case.land([row(1), row(9)])
    for selection in ({}, {"full_refresh": BOTH}):
        report = case.update(**selection)
        assert report.state == "COMPLETED", report.error
        for name in BOTH:
            outcome = report[name]
            assert (outcome.input_rows, outcome.output_rows, outcome.dropped_rows) == (2, 1, 1)
            assert DeltaTable(str(case.table(name))).metadata().partition_columns == ["year"]
            fields = {field.name: field for field in DeltaTable(str(case.table(name))).schema().fields}
            assert not fields["id"].nullable
            assert fields["id"].metadata["comment"] == "the key"
            assert case.rows(name, "id, year, later") == [(1, 2026, None)]
    case.rewrite(of_ddl(DDL.replace("the key", "another")))
    case.land([{"id": None, "name": "x", "day": "2025-01-01"}])
    report = case.update()
    assert report.statuses == dict.fromkeys(BOTH, "FAILED")
    for name in BOTH:
        assert "NOT NULL" in report[name].error.what
        assert case.rows(name, "id", "1") == [(1,)]
        comment = DeltaTable(str(case.table(name))).schema().fields[0].metadata["comment"]
        assert comment == "another"


COLUMNS = "id INT, name STRING, day DATE"


@pytest.mark.parametrize(
    ("ddl", "what"),
    [
        ("id INT DEFAULT 1", "DEFAULT"),
        ("id INT, PRIMARY KEY (id)", "more in it"),
        ("id INTT", "does not parse"),
        (
            f"{COLUMNS}, twice INT GENERATED ALWAYS AS (nope * 2)",
            "compute 'twice' of 't': .*non-existent column",
        ),
        (f"{COLUMNS}, twice DATE GENERATED ALWAYS AS (id * 2)", "compute 'twice' of 't': .*expression type"),
        (
            f"{COLUMNS}, chance DOUBLE GENERATED ALWAYS AS (rand())",
            "compute 'chance' of 't': .*non deterministic",
        ),
    ],
)
def test_a_schema_that_cannot_be(pipeline, ddl, what):
    """What open Delta can't keep up in a table of flows is refused before anything is written."""
    case = pipeline(source(f'schema="{ddl}"'))
    with pytest.raises(UnsupportedArgument, match=what):
        case.manifest()
    assert case.nothing_written()


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ({"spark.executor.memory": "1g"}, "spark.executor.memory can't be set"),
        ({"spark.sql.warehouse.dir": "/x"}, "spark.sql.warehouse.dir can't be set"),
        ({"spark.sql.shuffle.partitions": "many"}, "spark.sql.shuffle.partitions can't be set"),
    ],
)
def test_settings_that_no_query_has(pipeline, setting, what):
    """A setting of the whole application, or a value that Spark does not take, is refused with its line before anything is written."""
    case = pipeline(source(f"spark_conf={setting}"))
    with pytest.raises(UnsupportedArgument, match=what) as caught:
        case.update()
    assert caught.value.where == case.line_of("@dp.table")
    assert "under `spark`" in caught.value.remedy
    assert case.nothing_written()


def test_settings_that_a_query_has(pipeline, spark):
    """Settings of queries, of pipelines, and of the user's own are taken, and the session is left as it was."""
    given = {"pipelines.trigger.interval": "10 seconds", "my.own": "x", "spark.sql.shuffle.partitions": "7"}
    before = {name: spark.conf.get(name, None) for name in given}
    assert pipeline(source(f"spark_conf={given}")).manifest().flows
    assert {name: spark.conf.get(name, None) for name in given} == before


PRIVATE = """
@dp.table(private=True)
def hidden():
    return spark.readStream.schema("id INT").json(LANDING)

@dp.materialized_view
def shown():
    return dp.read("hidden").groupBy().count()
"""


def test_private_tables(pipeline, tmp_path):
    """A private table feeds its own pipeline; it is no table of the schema, and others can't read it by its name."""
    case = pipeline(PRIVATE)
    case.land([{"id": 1}, {"id": 2}])
    assert case.update().state == "COMPLETED"
    assert case.rows("shown") == [(2,)]
    assert not case.table("hidden").exists()
    assert case.manifest().dataset("hidden").private
    case.land([{"id": 3}])
    case.update()
    assert case.rows("shown") == [(3,)]
    other = pipeline('@dp.materialized_view\ndef x():\n    return spark.read.table("shop.hidden")\n')
    with pytest.raises(UnknownDataset):
        other.manifest()
