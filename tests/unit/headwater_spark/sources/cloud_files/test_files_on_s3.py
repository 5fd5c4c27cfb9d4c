"""What is examined in files on S3 before a stream starts, and what is done to them after it (decision 0193)."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from pyspark.sql.types import LongType, StructField, StructType
from tests.object_stores import StoreServer, leading_to

from headwater.errors import InvalidSourceOption, SourceUnreachable
from headwater.metrics.file_history import IngestedFile
from headwater.storage.object_path import ObjectPath
from headwater_spark.execution.file_cleaning import clean_read, move_destination
from headwater_spark.quarantine.unreadable_files import UnreadableFile, damaged_file
from headwater_spark.sources.cloud_files.frames import FileRead
from headwater_spark.sources.cloud_files.inference import csv_headers
from headwater_spark.sources.cloud_files.json_proof import Proof, proven
from headwater_spark.sources.cloud_files.new_files import file_uri, footer_key, is_there, listed
from headwater_spark.sources.cloud_files.options import parse_options
from headwater_spark.sources.cloud_files.schema_log import SchemaLog
from headwater_spark.sources.cloud_files.source import CloudFiles, ReadingFlow
from headwater_spark.sources.plan_sources import PATH_OPTION, TableNames, _entry

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def s3(light_store: StoreServer) -> Iterator[StoreServer]:
    """A server with a bucket ``raw``."""
    with leading_to(light_store):
        light_store.make_bucket("raw")
        yield light_store


def options(form: str, **more: str) -> Any:
    """The options of a read with a schema."""
    given = {"cloudFiles.format": form, **{f"cloudFiles.{key}": value for key, value in more.items()}}
    return parse_options(given, schema_given=True)


def parquet_bytes(rows: int, **columns: Any) -> bytes:
    """A file of many row groups."""
    buffer = io.BytesIO()
    parquet.write_table(pa.table({name: [value] * rows for name, value in columns.items()}), buffer)
    return buffer.getvalue()


def test_headers_of_csv(s3: StoreServer):
    """The head of each file is fetched, packed or not, and no more; one that is gone has none."""
    place = s3.place("raw", "csv")
    text = b"id,name\n" + b"1,x\n" * 100_000
    (place / "a.csv").write_bytes(text)
    (place / "b é.csv.gz").write_bytes(gzip.compress(b"more\n1\n"))
    paths = [str(place / name) for name in ("a.csv", "b é.csv.gz", "gone.csv")]
    with s3.counted() as requests:
        headers = csv_headers(paths, options("csv"))
    assert headers == {paths[0]: ("id", "name"), paths[1]: ("more",)}
    assert requests["GET"] <= 3, requests


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_footers(s3: StoreServer, form: str):
    """Files of one schema have one key, others another."""
    place = s3.place("raw", form)
    contents = {"a": {"id": 1}, "b": {"id": 2}, "c": {"id": 1, "more": "x"}}
    for name, columns in contents.items():
        if form == "avro":
            schema = ",".join(columns).encode()
            head = b"Obj\x01\x04\x16avro.schema" + bytes([len(schema) * 2]) + schema + bytes([columns["id"]])
            (place / name).write_bytes(head)
        else:
            buffer = io.BytesIO()
            (parquet if form == "parquet" else orc).write_table(
                pa.table({k: [v] for k, v in columns.items()}), buffer
            )
            (place / name).write_bytes(buffer.getvalue())
    keys = {name: footer_key(str(place / name), form) for name in contents}
    assert keys["a"] == keys["b"] != keys["c"]


def test_a_large_parquet_file_is_not_fetched(s3: StoreServer, monkeypatch: pytest.MonkeyPatch):
    """Its footer is."""
    import obstore

    place = s3.place("raw", "large/a.parquet")
    place.write_bytes(parquet_bytes(50_000, id=1, text="x" * 30) + b"")
    fetched = []
    ranges = obstore.get_range
    monkeypatch.setattr(
        obstore,
        "get_range",
        lambda *a, start, end: fetched.append(end - start) or ranges(*a, start=start, end=end),
    )
    footer_key(str(place), "parquet")
    assert 0 < sum(fetched) <= 3 * 65536


def test_json_is_not_fetched_twice(s3: StoreServer):
    """It is read in the way that needs no proof."""
    (s3.place("raw", "json") / "a.json").write_text('{"id": 1}\n')
    files = listed("s3://raw/json", options("json"))
    with s3.counted() as requests:
        assert proven(files, StructType([StructField("id", LongType())])) is Proof.NOTHING
    assert not requests


def test_whether_a_file_is_there(s3: StoreServer):
    """One request."""
    place = s3.place("raw", "there") / "x y.json"
    place.write_text("{}")
    with s3.counted() as requests:
        assert is_there(str(place))
        assert not is_there(f"{place}.gone")
    assert requests == {"HEAD": 2}


class NoSession:
    """A session that was started for S3, and is asked for nothing else."""

    conf = SimpleNamespace(get=lambda name, default: "S3AFileSystem")


def test_where_a_schema_is_kept(s3: StoreServer, tmp_path):
    """In storage, or in S3 by schemaLocation; versions are those of a folder. Below what is read it would be read."""
    (s3.place("raw", "read") / "a.json").write_text("{}")
    flow = ReadingFlow.of((), tmp_path)
    cloud = CloudFiles(NoSession(), tmp_path)  # type: ignore[arg-type]

    def read(location: str) -> Any:
        return cloud._read("s3://raw/read", options("json", schemaLocation=location), None, flow)

    log = read("s3://raw/schemas/of_read").log
    schema = StructType([StructField("id", LongType())])
    assert log.latest() is None
    assert [log.append(schema, "first"), log.append(StructType(), "second")] == [0, 1]
    assert SchemaLog(s3.place("raw", "schemas/of_read")).latest() == (1, StructType())
    assert str(read(str(tmp_path / "here")).log.location) == str(tmp_path / "here")
    for inside in ("s3://raw/read", "s3://raw/read/schemas/"):
        with pytest.raises(InvalidSourceOption, match="lies in the folder"):
            read(inside)
    with pytest.raises(InvalidSourceOption, match="can't lie in gs:"):
        read("gs://raw/schemas")


def test_a_prefix_without_objects(s3: StoreServer, tmp_path):
    """At the first start that is an error, which a retry may pass; later it is a folder that is empty now."""
    flow = ReadingFlow.of((), tmp_path)
    cloud = CloudFiles(NoSession(), tmp_path)  # type: ignore[arg-type]
    with pytest.raises(SourceUnreachable, match="no object at or below s3://raw/nothing") as caught:
        cloud._read("s3://raw/nothing", options("json"), None, flow)
    assert caught.value.transient
    epoch = flow.checkpoint.epoch_folder(0)
    for name in ("offsets", "commits"):
        (epoch / name).mkdir(parents=True)
        (epoch / name / "0").write_text("v1\n{}")
    assert cloud._read("s3://raw/nothing", options("json"), None, flow).path == "s3://raw/nothing"


@pytest.mark.parametrize(
    ("path", "streaming", "loaded"),
    [
        ("s3://raw/a/landing", True, "s3://raw/a/{landing/}"),
        ("s3://raw/a/landing/", True, "s3://raw/a/{landing/}"),
        ("s3://raw/a/landing", False, "s3://raw/a/landing"),
        ("s3://raw", True, "s3://raw"),
        ("s3://raw/a/b,c", True, "s3://raw/a/b,c"),
        ("s3://raw/*/landing", True, "s3://raw/*/landing"),
        ("/a/landing", True, "/a/landing"),
    ],
)
def test_the_path_that_spark_is_given(path: str, streaming: bool, loaded: str, tmp_path):
    """A stream must not fail on a prefix that was emptied; what is recorded is the path as it was written."""
    read = FileRead(path, options("json"), StructType(), StructType(), streaming=streaming)
    assert read.loaded == loaded
    tables = TableNames(tmp_path / "stubs", tmp_path / "warehouse", {})
    given = {"path": loaded, **({PATH_OPTION: path} if loaded != path else {})}
    entry = _entry("json", given, tables, streaming=True)
    assert entry.path == path
    assert PATH_OPTION not in entry.options


# -- cleaning ------------------------------------------------------------------------------------------------------


def ingested(file: Any, *, days: int) -> IngestedFile:
    """A file that was committed so long ago."""
    return IngestedFile(
        "f", 0, file.path, file.modified_ns // 1_000_000, "ingested", 0, NOW - timedelta(days=days)
    )


def read_of(path: str, **more: str) -> Any:
    """A read as far as its cleaning goes."""
    return SimpleNamespace(path=path, options=options("json", **more))


def names(place: ObjectPath) -> list[str]:
    """The files below a place."""
    return [file.path.removeprefix(f"{place}/") for file in listed(str(place), options("json"))]


def test_files_are_deleted_when_they_are_old(s3: StoreServer):
    """One that is young, or that was written again since it was read, stays."""
    place = s3.place("raw", "delete")
    for name in ("old.json", "young.json", "again.json", "new.json"):
        (place / name).write_text("{}")
    files = {file.path.rpartition("/")[2]: file for file in listed(str(place), options("json"))}
    history = [ingested(files["old.json"], days=9), ingested(files["young.json"], days=6)]
    before = replace(files["again.json"], modified_ns=files["again.json"].modified_ns - 2_000_000_000)
    history.append(ingested(before, days=9))
    read = read_of(str(place), cleanSource="DELETE", **{"cleanSource.retentionDuration": "8 days"})
    assert clean_read(read, history, now=NOW) == [f"{place}/old.json"]
    assert names(place) == ["again.json", "new.json", "young.json"]


def test_all_files_were_cleaned(s3: StoreServer):
    """Nothing lies below the prefix any more, so there is nothing to clean: the flow must not fail over it."""
    read = read_of(
        str(s3.place("raw", "emptied")), cleanSource="DELETE", **{"cleanSource.retentionDuration": "8 days"}
    )
    assert clean_read(read, [], now=NOW) == []


def test_an_object_that_is_overwritten_while_files_are_cleaned_stays(s3: StoreServer, monkeypatch):
    """Between the listing and the removal it has become another one."""
    place = s3.place("raw", "raced")
    (place / "a.json").write_text("{}")
    (file,) = listed(str(place), options("json"))
    (place / "a.json").write_text('{"other": 1}')
    monkeypatch.setattr("headwater_spark.execution.file_cleaning.listed", lambda *_: [file])
    read = read_of(str(place), cleanSource="DELETE", **{"cleanSource.retentionDuration": "8 days"})
    assert clean_read(read, [ingested(file, days=9)], now=NOW) == []
    assert names(place) == ["a.json"]


@pytest.mark.parametrize("pattern", ["", "/*/*.json"])
def test_files_are_moved_with_their_folders(s3: StoreServer, pattern: str):
    """What is there already under that name stays, and both are kept; of a glob the part before the first pattern is left out."""
    place, archive = s3.place("raw", f"move{len(pattern)}"), s3.place("raw", f"archive{len(pattern)}")
    (place / "b" / "a.json").write_text("new")
    (archive / "b" / "a.json").write_text("old")
    files = listed(f"{place}{pattern}", options("json"))
    where = {"cleanSource.moveDestination": str(archive), "cleanSource.retentionDuration": "0 seconds"}
    read = read_of(f"{place}{pattern}", cleanSource="MOVE", **where)
    assert clean_read(read, [ingested(file, days=1) for file in files], now=NOW) == [f"{place}/b/a.json"]
    assert not (place / "b" / "a.json").exists()
    assert sorted(file.size for file in listed(str(archive), options("json"))) == [3, 3]
    assert (archive / "b" / "a.json").read_text() == "old"


@pytest.mark.parametrize(
    ("path", "target", "words"),
    [
        ("s3://raw/in", "s3://raw/in/done", "inside the folder"),
        ("s3://raw/in/*/x.json", "s3://raw/in/done", "inside the folder"),
        ("s3://raw/in", "/archive", "another kind of storage"),
        ("/data/in", "s3://raw/in", "another kind of storage"),
        ("/data/in", "/data/in/done", "inside the folder"),
    ],
)
def test_where_files_can_not_be_moved(path: str, target: str, words: str):
    """Below what is read, or between a disk and a store."""
    with pytest.raises(InvalidSourceOption, match=words):
        move_destination(read_of(path, cleanSource="MOVE", **{"cleanSource.moveDestination": target}))


# -- names ---------------------------------------------------------------------------------------------------------


def test_a_damaged_file_is_named_as_it_was_listed():
    """By Spark's message, and back to the address by which Spark leaves it out."""
    said = (
        "SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        "s3://raw/x%20y%2520.parquet.  SQLSTATE: KD001"
    )
    assert damaged_file([said]) == "s3://raw/x y%20.parquet"
    assert UnreadableFile("s3://raw/x y%20.parquet", 0, 0, 0, 1, "").uri == "s3://raw/x%20y%2520.parquet"


@pytest.mark.parametrize("path", ["s3://raw/a?b*.json", "s3://raw/token=7/{a,b}#1", "s3://raw/x%20y"])
def test_addresses_are_recorded_whole(path: str, tmp_path):
    """Lag and checks list what the read lists; a login is taken out."""
    tables = TableNames(tmp_path / "stubs", tmp_path / "warehouse", {})
    assert _entry("json", {"path": path}, tables, streaming=True).path == path
    login = path.replace("s3://", "s3://AKIA:Hunter2Canary@")
    assert "Hunter2Canary" not in str(_entry("json", {"path": login}, tables, streaming=True).path)
    assert file_uri(path).startswith("s3://raw/")
