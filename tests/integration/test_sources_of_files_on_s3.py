"""Files on S3 are sources as files in folders are: each once, and the tables have the rows of an oracle.

One driver with what S3 needs runs all updates.
"""

from __future__ import annotations

import io
import json
import time
import traceback
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import boto3
import pyarrow as pa
import pytest
from deltalake import QueryBuilder
from pyarrow import parquet
from pyspark.sql import SparkSession
from tests.object_stores import StoreServer, store_server
from tests.pipeline_case import SMALL_QUERIES, SPARK, PipelineCase, spec_of
from tests.store_driver import StoreDriver

import run_backfill
from headwater.errors import HeadwaterError
from headwater.metrics.file_history import ingested_files
from headwater.metrics.file_listing import file_paths
from headwater.metrics.lag import flow_lag
from headwater.storage.access import object_store
from headwater.storage.delta_tables import small_table
from headwater.storage.place import place_of, use_in_this_driver
from headwater.updates.news import has_news
from headwater_spark.session import start_session

SOURCE = """
import os
LAKE = spark.conf.get("lake")

def cloud(name, form="json", **options):
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", form)
    return reader.options(**{key.replace("__", "."): value for key, value in options.items()})

@dp.table
def grown():
    reader = cloud("grown", cloudFiles__inferColumnTypes="true", cloudFiles__maxFilesPerTrigger="2",
                   cloudFiles__schemaLocation="s3://schemas/of/grown")
    return reader.load(f"{LAKE}/grown").withColumn("file", F.col("_metadata.file_name"))

@dp.table
def cells():
    reader = cloud("cells", "csv", cloudFiles__schemaEvolutionMode="rescue")
    return reader.load(f"{LAKE}/cells/2026-*/{{a,b}}*.csv")

@dp.table
def plain():
    rows = spark.readStream.schema("id INT, day STRING").json(f"{LAKE}/plain")
    rows = rows.withColumn("at", F.expr("make_date(2026, 1, int(day))"))
    return rows.withColumn("file", F.col("_metadata.file_path"))

@dp.table
@dp.expect_or_quarantine("small", "id < 1000")
def whole():
    return cloud("whole", "parquet").load(f"{LAKE}/whole")

@dp.table
def again():
    return cloud("again", cloudFiles__allowOverwrites="true").schema("id INT").load(f"{LAKE}/again")

@dp.table
def later():
    return cloud("later", cloudFiles__includeExistingFiles="false").schema("id INT").load(f"{LAKE}/again")

@dp.table
def cleaned():
    reader = cloud("cleaned", cloudFiles__cleanSource="MOVE", cloudFiles__cleanSource__moveDestination="s3://archive/done")
    return reader.option("cloudFiles.cleanSource.retentionDuration", "0 seconds").schema("id INT").load(f"{LAKE}/cleaned")

@dp.table
def fragile():
    reader = cloud("fragile", cloudFiles__schemaEvolutionMode="rescue", cloudFiles__inferColumnTypes="true")
    rows = reader.load(f"{LAKE}/fragile")
    if os.path.exists(LANDING + "/broken"):
        rows = rows.withColumn("id", F.when(F.col("id") < 5, F.col("id")).otherwise(F.raise_error(F.lit("five")).cast("bigint")))
    return rows.select("id", "_rescued_data")

@dp.materialized_view
def all_of_plain():
    return spark.sql("SELECT count(*) AS n, sum(id) AS ids FROM read_files('${lake}/plain', format => 'json', schema => 'id INT')")
"""
SQL = """
CREATE OR REFRESH STREAMING TABLE by_sql AS
SELECT *, _metadata.file_name AS file FROM STREAM read_files('${lake}/by_sql', format => 'parquet')
"""
MENDED = SOURCE.replace('rows.withColumn("at"', 'rows.withColumn("id", F.col("id") * 10).withColumn("at"')
ON_S3 = """
@dp.table
def grown():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return reader.option("cloudFiles.inferColumnTypes", "true").load("s3://raw/grown")
"""


DIFFERENCES: list[str] = []


def test_every_form_of_source_takes_its_files_once(tmp_path: Path, store_driver: StoreDriver):
    """Formats, globs, partitions, evolution, overwritten and damaged files, and a failed batch; roots in folders, and on S3."""
    with store_server(light=True) as server:
        for bucket in ("raw", "schemas", "archive", "beside"):
            server.make_bucket(bucket)
        # The pipeline's own spec says where the server is.
        differences = store_driver.run(drive, str(tmp_path), server.endpoint, str(server.log))
    assert differences == [], store_driver.said[-6000:]
    assert "of-the-test" not in store_driver.said


def drive(root: str, endpoint: str, log: str) -> list[str]:
    """All of it, in the driver; what is not as it should be."""
    use_in_this_driver(object_store("s3", {"endpoint": endpoint, "region": "us-east-1"}, {}))
    server = StoreServer(endpoint, Path(log), None)  # type: ignore[arg-type]  # it is not this process's own
    spec = f"  lake: s3://raw\nobject_store:\n  endpoint: {endpoint}\n  region: us-east-1\n"
    spec += spec_of({**SPARK, **SMALL_QUERIES})
    folders = PipelineCase(Path(root) / "folders", SOURCE, {"transformations/by_sql.sql": SQL}, spec)
    for part in (first, second, filled_again, third):
        print(part.__name__, time.monotonic(), flush=True)
        part(folders, server)
    stored = PipelineCase(Path(root) / "stored", ON_S3, {}, spec)
    stored.storage, stored.warehouse = place_of("s3://beside/storage"), place_of("s3://beside/warehouse")  # type: ignore[assignment]
    both_on_s3(stored)
    return DIFFERENCES


def same(real: object, expected: object, about: object = "") -> None:
    """Note a difference; the scenario goes on, so that one run shows all."""
    if real != expected:
        line = traceback.extract_stack()[-2].lineno
        DIFFERENCES.append(f"line {line}: {real!r} instead of {expected!r} {about}")
        print(DIFFERENCES[-1], flush=True)


def put(key: str, content: Any) -> None:
    """Upload JSON lines, a text, or the columns of a Parquet file."""
    if isinstance(content, list):
        content = "".join(json.dumps(row) + "\n" for row in content)
    if isinstance(content, dict):
        buffer = io.BytesIO()
        parquet.write_table(pa.table(content), buffer)
        content = buffer.getvalue()
    place = place_of(f"s3://raw/{key}")
    place.write_bytes(content if isinstance(content, bytes) else content.encode())


def mark(server: StoreServer, key: str) -> None:
    """Mark a folder, as Hadoop and consoles do; no path of ours ends with a slash."""
    client: Any = boto3.session.Session().client("s3", endpoint_url=server.endpoint, region_name="us-east-1")
    client.put_object(Bucket="raw", Key=key)


def rows(case: PipelineCase, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of a table, sorted."""
    table = small_table(place_of(f"{case.warehouse}/shop/{name}"))
    chosen = ", ".join(f'"{column}"' for column in columns)
    answer = QueryBuilder().register("t", table).execute(f"select {chosen} from t").read_all()
    return sorted((tuple(row.values()) for row in pa.table(answer).to_pylist()), key=repr)


def first(case: PipelineCase, server: StoreServer) -> None:
    """What is there at first, with marks of folders, hidden names, a damaged file, and a flow that fails."""
    mark(server, "grown/")
    mark(server, "grown/nothing yet/")
    for number in (1, 2, 3):
        put(f"grown/day=2026-01-0{number}/x y ü%41:{number}.json", [{"id": number, "name": f"n{number}"}])
    put("grown/_tmp/no.json", [{"id": 99}])
    put("grown/empty.json", "")
    put("cells/2026-01/a.csv", "id,name\n1,x\n2,y\n")
    put("cells/2026-01/c.csv", "id,name\n9,no\n")
    put("cells/2025-01/a.csv", "id,name\n8,no\n")
    put("plain/day=1/a.json", [{"id": 1}])
    put("plain/day=2/b.json", [{"id": 2}])
    put("whole/a.parquet", {"id": [1, 2]})
    put("whole/b.parquet", b"PAR1" + b"no parquet at all" * 9 + b"PAR1")
    put("whole/c.parquet", {"id": [3, 2000]})
    put("by_sql/a.parquet", {"id": [1], "name": ["a"]})
    put("again/1.json", [{"id": 1}])
    put("cleaned/a/b/1.json", [{"id": 1}])
    put("fragile/1.json", [{"id": 1}, {"id": 5}])
    (case.landing / "broken").touch()
    report = case.update()
    statuses = report.statuses
    same(statuses.pop("fragile"), "FAILED")
    same(set(statuses.values()), {"COMPLETED"})
    same(report["grown"].batches, 2)
    names = [(number, f"n{number}", f"2026-01-0{number}") for number in (1, 2, 3)]
    same([(i, n, str(d)) for i, n, d in rows(case, "grown", "id", "name", "day")], names)
    same(
        [unquote(file) for (file,) in rows(case, "grown", "file")], [f"x y ü%41:{n}.json" for n in (1, 2, 3)]
    )
    same(rows(case, "cells", "id", "name"), [("1", "x"), ("2", "y")])
    same(
        rows(case, "plain", "id", "day", "file"),
        [
            (1, "1", "s3://raw/plain/day=1/a.json"),
            (2, "2", "s3://raw/plain/day=2/b.json"),
        ],
    )
    same(rows(case, "whole", "id"), [(1,), (2,), (3,)])
    held = rows(case, "whole_quarantine", "_row", "_file")
    same([json.loads(row).get("path") for row, _ in held if "path" in row], ["s3://raw/whole/b.parquet"])
    same(sorted(file for _, file in held), ["s3://raw/whole/b.parquet", "s3://raw/whole/c.parquet"])
    same(rows(case, "all_of_plain", "n", "ids"), [(2, 3)])
    same((rows(case, "again", "id"), rows(case, "later", "id")), ([(1,)], []))
    same([str(path) for path, _ in below("s3://archive/done")], ["s3://archive/done/a/b/1.json"])
    same(below("s3://raw/cleaned"), [])


def second(case: PipelineCase, _: StoreServer) -> None:
    """New files with new columns, an overwritten file, files of another time, and the failed batch again; a flow is mended."""
    time.sleep(1.1)  # times of objects are whole seconds
    (case.landing / "broken").unlink()
    case.rewrite(MENDED)
    put("grown/day=2026-01-01/x y ü%41:1.json", [{"id": 100, "name": "not read"}])
    put("grown/day=2026-01-04/d.json", [{"id": 4, "name": "n4", "extra": 1.5}])
    put("cells/2026-02/b.csv", "name,id,more\nz,3,surplus\n")
    put("plain/day=3/a.json", [{"id": 3}])
    put("whole/d.parquet", {"id": [4], "colour": ["red"]})
    put("by_sql/b.parquet", {"id": [2], "name": ["b"], "more": [7]})
    put("again/1.json", [{"id": 2}])
    put("again/2.json", [{"id": 3}])
    put("cleaned/2.json", [{"id": 2}])
    project, manifest = case.project(), case.manifest()
    same(has_news(project).moved, True)
    lag = {flow.name: flow_lag(project, flow).backlog.files for flow in manifest.flows if flow.streaming}
    same(
        lag,
        {
            "grown": 1,
            "cells": 1,
            "plain": 1,
            "whole": 1,
            "again": 2,
            "later": 1,
            "cleaned": 1,
            "fragile": 1,
            "by_sql": 1,
        },
    )
    report = case.update()
    same(report.state, "COMPLETED")
    same(rows(case, "grown", "id", "extra"), [(1, None), (2, None), (3, None), (4, 1.5)])
    versions = [path.name for path, _ in below("s3://schemas/of/grown")]
    same(versions, ["0", "1"])
    same(rows(case, "cells", "id", "name"), [("1", "x"), ("2", "y"), ("3", "z")])
    (rescued,) = [json.loads(text) for (text,) in rows(case, "cells", "_rescued_data") if text]
    same(rescued, {"more": "surplus", "_file_path": "s3://raw/cells/2026-02/b.csv"})
    same(rows(case, "plain", "id", "day"), [(1, "1"), (2, "2"), (30, "3")])
    same(rows(case, "whole", "id", "colour"), [(1, None), (2, None), (3, None), (4, "red")])
    same(
        rows(case, "by_sql", "id", "name", "more", "file"),
        [
            (1, "a", None, "a.parquet"),
            (2, "b", 7, "b.parquet"),
        ],
    )
    same(rows(case, "again", "id"), [(1,), (2,), (3,)])
    same(rows(case, "later", "id"), [(3,)])
    same(rows(case, "cleaned", "id"), [(1,), (2,)])
    same([row[0] for row in rows(case, "fragile", "id")], [1, 5])
    same(rows(case, "all_of_plain", "n", "ids"), [(3, 6)])
    states = [file.state for file in ingested_files(case.project().state_folder, "again", "again")]
    same(sorted(states), ["ingested", "ingested", "superseded"])


def filled_again(case: PipelineCase, _: StoreServer) -> None:
    """Backfills take the files that the streams have read: a file that was not read is left out, or the range is refused."""
    new, late = "plain/day=1/x y ü%41:new.json", "grown/day=2026-01-02/late.json"
    put(new, [{"id": 7}])
    put(late, [{"id": 22, "name": "late"}])
    first_days = ("--tables", "plain", "--column", "at", "--from", "2026-01-01", "--to", "2026-01-03")
    code, answer = case.call(run_backfill.main, *first_days)
    same((code, [(part["output_rows"], part["replaced_rows"]) for part in answer["flows"]]), (0, [(2, 2)]))
    same(rows(case, "plain", "id", "day"), [(10, "1"), (20, "2"), (30, "3")])
    second_day = ("--tables", "grown", "--column", "day", "--from", "2026-01-02", "--to", "2026-01-03")
    code, answer = case.call(run_backfill.main, *second_day)
    same((code, answer["error"]["condition"]), (3, "RANGE_NOT_READ_YET"))
    # The others are at their end.
    same(case.update(tables=("grown", "plain", "all_of_plain")).state, "COMPLETED")
    code, answer = case.call(run_backfill.main, *second_day)
    same((code, [(part["output_rows"], part["replaced_rows"]) for part in answer["flows"]]), (0, [(2, 2)]))
    same([i for (i,) in rows(case, "grown", "id")], [1, 2, 22, 3, 4])
    at = datetime.fromtimestamp(place_of(f"s3://raw/{new}").stat().st_mtime, UTC)
    times = (
        "--range",
        "file-time",
        "--from",
        at.isoformat(),
        "--to",
        (at + timedelta(seconds=1)).isoformat(),
    )
    code, answer = case.call(run_backfill.main, "--tables", "plain", *times)
    same((code, answer["error"]["condition"]), (3, "RANGE_ALREADY_WRITTEN"))
    code, answer = case.call(
        run_backfill.main, "--tables", "plain", *times, "--mode", "merge", "--keys", "file"
    )
    same((code, [part["input_rows"] for part in answer["flows"]]), (0, [1]))
    same(rows(case, "plain", "id", "day"), [(10, "1"), (20, "2"), (30, "3"), (70, "1")])


def third(case: PipelineCase, server: StoreServer) -> None:
    """Without news no JVM is needed; one listing for each source says so."""
    with server.counted() as requests:
        same(has_news(case.project()).reasons, ())
    # Of each source a listing, and one more of a folder with an empty file; an address with two alternatives has two.
    same(requests.total() <= 10 + 1 + 1, True, requests)
    listings(start_session("tests", {}))
    case.write("transformations/odd.py", "from headwater import pipelines as dp\n@dp.table\ndef odd():\n"
               "    return spark.readStream.schema('id INT').json('s3://no-such-bucket/x')\n")  # fmt: skip
    with pytest.raises(HeadwaterError, match=r"\[STORE_REFUSED\] The bucket is not there"):
        case.manifest()


def listings(session: SparkSession) -> None:
    """Spark's own listing and ours are one: hidden names, also where a pattern names them, and nested folders."""
    names = (
        "a.json",
        "_hidden.json",
        ".dot.json",
        "sub/b.json",
        "_sub/c.json",
        "_sub/.d.json",
        "sub/_x/e.json",
    )
    for name in (
        *(f"flat/{name}" for name in names),
        *(f"deep/{name}" for name in (*names, "k=1/f.json", "_k=1/sub/g.json")),
    ):
        put(f"odd/{name}", [{"id": 1}])
    for pattern in ("", "/*", "/*/*", "/?*.json", "/[_as]*", "/[^s]*", "/{a.json,sub}", "/_sub"):
        for folder, deep in (("flat", "false"), ("flat", "true"), ("deep", "true")):
            path, options = f"s3://raw/odd/{folder}{pattern}", {"recursiveFileLookup": deep}
            files = session.read.schema("id INT").options(**options).format("json").load(path).inputFiles()
            same(sorted(map(unquote, files)), sorted(file_paths(path, options)), f"{path} {options}")


def both_on_s3(case: PipelineCase) -> None:
    """Storage and warehouse on S3 as well: the same rows, and a new column."""
    same(case.update().state, "COMPLETED")
    same(sorted(row[0] for row in rows(case, "grown", "id")), [2, 3, 4, 22, 100])
    put("grown/e.json", [{"id": 5, "last": True}])
    same(case.update().state, "COMPLETED")
    same(sorted(row[0] for row in rows(case, "grown", "id")), [2, 3, 4, 5, 22, 100])
    same([value for (value,) in rows(case, "grown", "last") if value is not None], [True])
    same(has_news(case.project()).moved, False)


def below(address: str) -> list[tuple[Any, Any]]:
    """The objects below an address."""
    from headwater.storage.walking import files_below

    return sorted(files_below(place_of(address)), key=lambda found: str(found[0]))
