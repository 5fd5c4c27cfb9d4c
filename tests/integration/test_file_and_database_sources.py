"""Each file format as a batch and as a stream, and a real Postgres over JDBC."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.postgres_server import PROGRAMS, Postgres, running_postgres

FORMATS = ("parquet", "csv", "json", "avro", "orc", "text")
SCHEMA = {"text": "value STRING"}
# All formats in one query of each kind: a query costs a second of its own.
READ = """
def rows_of(reader, name):
    read = reader.format(name).schema(SCHEMAS.get(name, "id INT, name STRING")).option("header", "true").load(f"{LANDING}/{name}")
    return read.select(F.lit(name).alias("format"), F.concat_ws(" ", *read.columns).alias("row"))

def all_of(reader):
    first, *others = [rows_of(reader, name) for name in FORMATS]
    for rows in others:
        first = first.union(rows)
    return first

@dp.table
def streamed():
    return all_of(spark.readStream)

@dp.materialized_view
def whole():
    return all_of(spark.read)
"""


def write(spark: SparkSession, name: str, folder: Path, *numbers: int) -> None:
    """Append a file of rows in a format."""
    rows = [(str(number),) if name == "text" else (number, f"n{number}") for number in numbers]
    frame = spark.createDataFrame(rows, SCHEMA.get(name, "id INT, name STRING")).coalesce(1)
    frame.write.format(name).option("header", "true").mode("append").save(str(folder / name))


def test_a_file_older_than_those_that_were_read(pipeline):
    """What `cp -p` brings from an archive is read, by each way to write the read; a limit of the read's own holds, and the lag agrees."""
    case = pipeline(
        "def given():\n    return spark.readStream.schema('id INT')\n\n"
        "@dp.table\ndef short():\n    return given().json(LANDING)\n\n"
        "@dp.table\ndef long():\n    return given().format('json').option('path', LANDING).load()\n\n"
        "@dp.table\ndef limited():\n    return given().option('maxFileAge', '7d').json(LANDING)\n"
    )
    case.land([{"id": 1}])
    assert case.update().state == "COMPLETED"
    case.land([{"id": 2}])
    os.utime(case.landing / "00002.json", (1_000_000_000, 1_000_000_000))
    report = case.update()
    assert [report[name].output_rows for name in ("short", "long", "limited")] == [1, 1, 0]
    assert [report[name].backlog_records for name in ("short", "long", "limited")] == [0, 0, 0]


def test_file_formats(pipeline, spark: SparkSession):
    """In six formats a first update takes all rows, and a second one the stream's new rows and the batch's whole."""
    case = pipeline(f"FORMATS, SCHEMAS = {FORMATS!r}, {SCHEMA!r}\n{READ}")
    for numbers, rows in (((1, 2), 12), ((3,), 6)):
        for name in FORMATS:
            write(spark, name, case.landing, *numbers)
        report = case.update()
        assert report.state == "COMPLETED", report.error
        assert report["streamed"].output_rows == rows
    expected = sorted(
        (name, f"{n}" if name == "text" else f"{n} n{n}") for name in FORMATS for n in (1, 2, 3)
    )
    assert case.rows("streamed") == expected
    assert case.rows("whole") == expected


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A server of this module's own."""
    with running_postgres() as server:
        yield server


JDBC = """
URL = "jdbc:postgresql://127.0.0.1:{port}/postgres"

@dp.table
def customers():
    return (spark.read.format("jdbc").option("url", URL).option("dbtable", "public.customers")
            .option("user", "shop").option("password", dbutils.secrets.get("pg", "password")).load())

@dp.materialized_view
def germans():
    return spark.read.jdbc(URL, "(select * from customers where country = 'DE') q", properties={{"user": "shop"}})
"""


@pytest.mark.skipif(PROGRAMS is None, reason="no Postgres server is installed here")
def test_a_database(pipeline, postgres: Postgres, monkeypatch: pytest.MonkeyPatch):
    """Tables and queries of a Postgres are read over JDBC, anew with each update, and the password is kept out of the log."""
    monkeypatch.setenv("HEADWATER_SECRET_PG_PASSWORD", "LETMEIN")
    postgres.run(
        "create table customers (id int, name text, country text, since timestamptz, spent numeric(10,2))"
    )
    postgres.run("insert into customers values (1, 'Ann', 'DE', now(), 3.50), (2, 'Bo', 'FR', now(), null)")
    case = pipeline(JDBC.format(port=postgres.port))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.rows("germans", "id, name") == [(1, "Ann")]
    postgres.run("insert into customers values (3, 'Cem', 'DE', now(), 1)")
    assert case.update().state == "COMPLETED"
    assert case.rows("customers", "id, country") == [(1, "DE"), (2, "FR"), (3, "DE")]
    written = b"".join(path.read_bytes() for path in case.storage.rglob("*") if path.is_file())
    assert b"LETMEIN" not in written
    assert "LETMEIN" not in case.manifest().to_json()
