"""A Hive metastore lists the tables of a pipeline as they are, through updates and verbs, and others read them there by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests import postgres_server
from tests.hive_metastore import hive_metastore
from tests.pipeline_case import SMALL_QUERIES, PipelineCase

from headwater.commands.command_line import main
from headwater.definitions.dataset import DatasetKind
from headwater.graph.manifest import DatasetEntry, Manifest
from headwater.metastore.column_types import Column
from headwater.metastore.conditions import MetastoreNameTaken
from headwater.metastore.entry import Entry, EntryName, columns_of, table_of
from headwater.metastore.hive import open_metastore
from headwater.metastore.registration import is_due, register
from headwater.runtime.jars import ensure_jars
from headwater.runtime.ports import free_port
from headwater.runtime.submit import submit_conf
from headwater.updates.news import has_news

SOURCE = """
@dp.table(comment="all sales", table_properties={"team": "blue"})
def sales():
    return spark.readStream.schema("id INT, shop STRING").json(LANDING)

@dp.materialized_view(name="main.mart.sums")
def sums():
    return dp.read("sales").groupBy("shop").agg(F.count("*").alias("n"))

@dp.materialized_view
def old():
    return dp.read("sales").select("id")

@dp.table(private=True)
def inner():
    return dp.read_stream("sales").select("id")
"""
EVOLVED = (
    SOURCE.replace('comment="all sales", table_properties={"team": "blue"}', 'comment="every sale"')
    .replace('"id INT, shop STRING"', '"id INT, shop STRING, price DOUBLE"')
    .replace('groupBy("shop").agg(F.count("*").alias("n"))', 'groupBy("id").agg(F.max("shop").alias("n"))')
)
RENAMED = EVOLVED.replace("dp.table(comment", 'dp.table(name="mart.purchases", comment').replace(
    '"sales"', '"mart.purchases"'
)
LATER = "\n@dp.table\ndef later():\n    return dp.read_stream('mart.purchases')\n"
READER = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
sales = spark.table("mart.purchases")
described = spark.sql("DESCRIBE EXTENDED mart.purchases").collect()
print(json.dumps({
    "databases": sorted(row[0] for row in spark.sql("SHOW DATABASES").collect()),
    "tables": sorted(row.tableName for row in spark.sql("SHOW TABLES IN shop").collect()),
    "rows": sorted(map(list, sales.collect())),
    "sums": sorted(map(list, spark.sql("SELECT * FROM spark_catalog.main_mart.sums").collect())),
    "columns": sales.columns,
    "about": {row[0]: row[1] for row in described if row[0] in ("Comment", "Provider", "Type")},
}))
"""


def call(case: PipelineCase, *arguments: str) -> int:
    """The exit code of a verb."""
    verb, *rest = arguments
    return main([verb, str(case.folder), *rest, f"--storage={case.storage}", f"--warehouse={case.warehouse}"])


def listed(port: int, *names: str):
    """The entries of these names that the metastore has."""
    with open_metastore([("127.0.0.1", port)]) as metastore:
        pairs = [name.split(".") for name in names]
        return {
            f"{database}.{table}": entry
            for database, table in pairs
            for entry in metastore.tables(database, [table]).values()
        }


def about(entry):
    """Properties of an entry."""
    return entry[9].value.values


def read_by_name(port: int, folder: Path):
    """What another Spark sees, which has Hive support and knows nothing of the pipeline.

    Its JVM starts as an update's does, with classes that are ready: with jars that it adds by itself it takes half as long again.
    """
    (folder / "reader.py").write_text(READER)
    ours = submit_conf({})
    start = {key: ours[key] for key in ("spark.driver.extraClassPath", "spark.driver.extraJavaOptions")}
    conf = {
        **start, **SMALL_QUERIES, "spark.master": "local[1]", "spark.ui.enabled": "false",
        "spark.hadoop.hive.metastore.uris": f"thrift://127.0.0.1:{port}", "spark.sql.shuffle.partitions": "1",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension", "spark.driver.host": "127.0.0.1",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(folder / "other"),
    }  # fmt: skip
    options = " ".join(f"--conf '{key}={value}'" for key, value in conf.items())
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"{options} pyspark-shell"}
    done = subprocess.run(
        [sys.executable, "reader.py"],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_entries_follow_the_tables_and_others_read_them(tmp_path, spark):
    """An outage loses nothing and is made up for without a JVM; columns, comment and properties follow; a renamed table keeps its
    entry, a dropped one loses it; a table of somebody else stops the update before a row; another Spark reads all by name.
    """
    away = f"metastore: {{uri: 'thrift://127.0.0.1:{free_port()}'}}\n"
    case = PipelineCase(tmp_path / "case", SOURCE, spec=away)
    with hive_metastore(tmp_path / "hive") as port:
        case.land([{"id": 1, "shop": "a"}, {"id": 2, "shop": "b"}])
        assert case.update().state == "COMPLETED"
        assert len(case.rows("sales")) == 2
        (warning,) = [e for e in case.events(level="WARN") if e["event_type"] == "operation_progress"]
        assert warning["details"]["operation_progress"]["condition"] == "METASTORE_UNREACHABLE"

        spec = case.folder / "pipeline.yml"
        spec.write_text(spec.read_text().replace(away, f"metastore: {{uri: 'thrift://127.0.0.1:{port}'}}\n"))
        assert is_due(case.project())
        assert not has_news(case.project()).moved
        assert call(case, "run") == 0
        names = ("shop.sales", "main_mart.sums", "shop.old", "shop.inner")
        entries = listed(port, *names)
        assert set(entries) == set(names[:3])
        assert columns_of(entries["main_mart.sums"]) == (Column("shop", "string"), Column("n", "bigint"))
        assert about(entries["shop.sales"])["comment"] == "all sales"
        assert about(entries["shop.sales"])["team"] == "blue"

        case.rewrite(EVOLVED)
        case.land([{"id": 3, "shop": "b", "price": 1.5}])
        assert case.update().state == "COMPLETED"
        entries = listed(port, *names)
        assert columns_of(entries["shop.sales"])[2] == Column("price", "double")
        assert columns_of(entries["main_mart.sums"]) == (Column("id", "int"), Column("n", "string"))
        assert about(entries["shop.sales"])["comment"] == "every sale"
        assert "team" not in about(entries["shop.sales"])

        assert call(case, "rename", "sales", "mart.purchases", "--yes") == 0
        assert call(case, "drop", "old", "--yes") == 0
        entries = listed(port, *names, "mart.purchases")
        assert set(entries) == {"main_mart.sums", "mart.purchases"}

        foreign = Entry(
            EntryName("shop", "later"), "later", "other", "x", str(tmp_path / "x"), (Column("a", "int"),)
        )
        with open_metastore([("127.0.0.1", port)]) as metastore:
            assert metastore.create(table_of(foreign, None, "ada", 1))
        before = listed(port, "shop.later")
        case.rewrite(RENAMED + LATER)
        with pytest.raises(MetastoreNameTaken, match=r"shop\.later"):
            case.update()
        assert not case.table("later").exists()
        assert not case.table("old").exists()
        assert listed(port, "shop.later") == before

        seen = read_by_name(port, tmp_path)
    assert seen["databases"] == ["default", "main_mart", "mart", "shop"]
    assert seen["tables"] == ["later"]
    assert seen["columns"] == ["id", "shop", "price"]
    assert seen["rows"] == [[1, "a", None], [2, "b", None], [3, "b", 1.5]]
    assert seen["sums"] == [[1, "a"], [2, "b"], [3, "b"]]
    assert seen["about"] == {"Comment": "every sale", "Provider": "delta", "Type": "EXTERNAL"}


@pytest.mark.skipif(postgres_server.PROGRAMS is None, reason="no Postgres on this machine")
def test_a_metastore_on_postgres(tmp_path):
    """With its tables created without constraints it does not wait for itself; entries are created, altered, renamed and dropped."""
    (driver,) = [jar for jar in ensure_jars("spark") if jar.name.startswith("postgresql")]
    folder = tmp_path / "pipeline"
    folder.mkdir()
    with postgres_server.running_postgres() as postgres:
        settings = {
            "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres",
            "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
            "javax.jdo.option.ConnectionUserName": postgres_server.USER,
            "datanucleus.schema.autoCreateAll": "false",
            "datanucleus.schema.autoCreateTables": "true",
            "datanucleus.schema.autoCreateColumns": "true",
            "datanucleus.schema.autoCreateConstraints": "false",
        }
        with hive_metastore(tmp_path / "hive", settings, str(driver)) as port:
            case = PipelineCase(tmp_path / "case", spec=f"metastore: {{uri: 'thrift://127.0.0.1:{port}'}}\n")
            table = case.table("sales")
            write_deltalake(str(table), pa.table({"id": [1]}))
            project = case.project()
            project.state_folder.mkdir(parents=True)

            def steps(*names: str) -> list[str]:
                datasets = tuple(
                    DatasetEntry(name=name, kind=DatasetKind.STREAMING_TABLE, location=f"shop/{name}")
                    for name in names
                )
                manifest = Manifest(
                    headwater_version="1", pipeline_id="case", pipeline_name="case", schema_name="shop", source_hash="",
                    datasets=datasets, flows=(),
                )  # fmt: skip
                done = register(project, manifest)
                assert not done.troubles, done.troubles
                return [str(step) for step in done.steps]

            assert steps("sales") == ["create shop.sales"]
            write_deltalake(str(table), pa.table({"label": ["a"]}), mode="overwrite", schema_mode="overwrite")
            assert steps("sales") == ["alter shop.sales"]
            table.rename(case.table("bought"))
            assert steps("bought") == ["rename shop.sales to shop.bought"]
            case.table("bought").rename(tmp_path / "gone")
            assert steps("bought") == ["drop shop.bought"]
