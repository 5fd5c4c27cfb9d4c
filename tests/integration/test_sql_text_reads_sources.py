"""``spark.sql`` with the functions of the closed platform that read sources, and with options of a stream (features B87)."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.pipeline_case import PipelineCase

from headwater.errors import InvalidPipeline, InvalidSourceOption

pytestmark = pytest.mark.usefixtures("one_partition")


def table_of(query: str, name: str = "t") -> str:
    """A table over a SQL text, in which LANDING stands for the landing folder."""
    return f"\n@dp.table\ndef {name}():\n    return spark.sql({query!r})\n"


FILES = "read_files('${landing}', format => 'json')"


STREAMS_OF_FILES = {
    "plain": f"SELECT id, name FROM STREAM {FILES}",
    "with_alias": f"SELECT f.id, f.name FROM STREAM({FILES}) AS f WHERE f.id > 0",
    "in_cte": f"WITH f AS (SELECT * FROM STREAM {FILES}) SELECT id, name FROM f",
    "with_options": "SELECT id, name FROM STREAM read_files('${landing}', format => 'json', schemaHints => 'id INT', "
    "`cloudFiles.maxFilesPerTrigger` => 1, schemaEvolutionMode => 'rescue')",
    "with_path": "SELECT id, name FROM STREAM read_files(path => '${landing}', format => 'json', schema => 'id BIGINT, name STRING')",
    "cloud_files": "SELECT id, name FROM cloud_files('${landing}', 'json', map('cloudFiles.schemaHints', 'id BIGINT'))",
}


def test_a_stream_of_files(pipeline):
    """STREAM read_files, in all its spellings, is cloudFiles: each file once, columns inferred with their types."""
    case: PipelineCase = pipeline("".join(table_of(query, name) for name, query in STREAMS_OF_FILES.items()))
    case.land([{"id": 1, "name": "a"}])
    report = case.update()
    assert report.state == "COMPLETED", report.error
    case.land([{"id": 2, "name": "b"}])
    report = case.update()
    names = list(STREAMS_OF_FILES)
    assert {name: report[name].output_rows for name in names} == dict.fromkeys(names, 1)
    assert {name: case.rows(name) for name in names} == {name: [(1, "a"), (2, "b")] for name in names}


JOINED = (
    "SELECT f.n, r.word FROM read_files('${landing}/csv', format => 'csv') AS f(n, w) "
    "JOIN read_files('${landing}/json', format => 'json', schema => 'id INT, word STRING') r ON r.id = f.n"
)
# By the options for reading two rows of CSV: what comes of them.
COLUMNS = {
    "inferred": ("inferSchema => true, header => true", [(1, "x"), (2, "y")]),
    "not_inferred": ("inferSchema => false", [("1", "x"), ("2", "y")]),
    "hinted": ("schemaHints => 'id DECIMAL(4, 1)', schemaEvolutionMode => 'none'", [(Decimal("1.0"), "x"), (Decimal("2.0"), "y")]),
    "declared": ("header => false, schema => 'a STRING, b STRING', inferSchema => false", [("1", "x"), ("2", "y"), ("id", "w")]),
}  # fmt: skip
SECRET = "read_files('${landing}/json', format => 'js' || secret('landing', 'format'), schema => 'id INT')"
SECOND = "read_files('${landing}/json', format => 'json', fileNamePattern => '*2.json', schema => 'id INT')"
AT_ONCE = {
    "joined": JOINED,
    **{
        name: f"SELECT * FROM read_files('${{landing}}/csv', format => 'csv', {options})"
        for name, (options, _) in COLUMNS.items()
    },
    "by_secret": f"SELECT id FROM {SECRET}",
    "by_pattern": f"SELECT id FROM {SECOND}",
    "stream_by_pattern": f"SELECT id FROM STREAM {SECOND}",
}


def test_files_at_once(pipeline, monkeypatch):
    """Without STREAM all files are read anew: a materialized view, in joins and with names for its columns too. Types are those of
    the options: inferred or not, hinted, or declared. secret('scope', 'key') and texts joined by || are values, as in Lakeflow's
    guides for Kafka. fileNamePattern chooses files, in both ways of reading; nothing else of the folder is read.
    """
    monkeypatch.setenv("HEADWATER_SECRET_LANDING_FORMAT", "on")
    case: PipelineCase = pipeline("".join(table_of(query, name) for name, query in AT_ONCE.items()))
    case.land([{"id": 1, "word": "one"}], "json")
    case.land([{"id": 2, "word": "two"}], "json")
    (case.landing / "csv").mkdir()
    (case.landing / "csv/1.csv").write_text("id,w\n1,x\n2,y\n")
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.rows("joined") == [(1, "one"), (2, "two")]
    assert {name: case.rows(name) for name in COLUMNS} == {name: rows for name, (_, rows) in COLUMNS.items()}
    assert case.rows("by_secret") == [(1,), (2,)]
    assert case.rows("by_pattern") == case.rows("stream_by_pattern") == [(2,)]
    (case.landing / "csv/2.csv").write_text("id,w\n2,z\n")
    assert case.update(tables=("joined",))["joined"].output_rows == 3


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("STREAM read_files('${landing}')", "format => 'json'"),
        ("STREAM read_files('${landing}', format => lower('JSON'))", "${key}"),
        ("STREAM read_files('${landing}', format => 'json', maxFilesPerTriger => 1)", "maxFilesPerTrigger"),
        ("STREAM read_files(format => 'json')", "read_files("),
        ("read_files('${landing}', format => 'json', schemaEvolutionMode => 'rescue')", "STREAM read_files"),
        ("outside TIMESTAMP AS OF current_date()", "TIMESTAMP AS OF '2026-01-31 12:00:00'"),
        ("STREAM read_kafka(bootstrapServers => 'h:1', subscrib => 'a')", "subscribe"),
    ],
)
def test_calls_that_can_not_be_honoured(pipeline, call: str, said: str):
    """They are refused by validate, at the user's line, with the form that works."""
    case: PipelineCase = pipeline(table_of(f"SELECT * FROM {call}"))
    with pytest.raises(InvalidPipeline) as caught:
        case.manifest()
    assert isinstance(caught.value, InvalidSourceOption)
    assert said in caught.value.remedy
    assert caught.value.where == case.line_of("spark.sql(")


def test_topics(pipeline):
    """read_kafka and read_kinesis are the streams of those formats."""
    kafka = "SELECT CAST(value AS STRING) v FROM STREAM read_kafka(bootstrapServers => 'h:9092', subscribe => 'a')"
    kinesis = "SELECT k.data FROM STREAM read_kinesis(streamName => 'clicks', region => 'eu-west-1') AS k"
    manifest = pipeline(table_of(kafka, "a") + table_of(kinesis, "b")).manifest()
    values = {
        flow.name: (flow.sources[0].kind, flow.sources[0].name, flow.streaming) for flow in manifest.flows
    }
    assert values == {"a": ("kafka", "a", True), "b": ("kinesis", "clicks", True)}


def test_options_of_a_stream(pipeline):
    """STREAM t WITH (SKIPCHANGECOMMITS = TRUE) follows a table that gets updates; a view may say in which files its rows lie,
    and read a table as it was.
    """
    stream = table_of("SELECT * FROM STREAM outside WITH (SKIPCHANGECOMMITS=TRUE)")
    files = table_of("SELECT *, o._metadata.file_name AS file FROM outside o", "files")
    first = "SELECT o.id, (SELECT count(*) FROM outside VERSION AS OF 0) AS n FROM outside VERSION AS OF ${first} AS o"
    own = "SELECT outside.id FROM outside FOR VERSION AS OF 0 WHERE outside.id IN (SELECT id FROM t VERSION AS OF 0)"
    case: PipelineCase = pipeline(
        stream + files + table_of(first, "first") + table_of(own, "own"), spec="  first: 0\n"
    )
    path = str(case.table("outside"))
    write_deltalake(path, pa.table({"id": [1], "name": ["a"]}))
    assert case.update().state == "COMPLETED"
    DeltaTable(path).update({"name": "'b'"})
    write_deltalake(path, pa.table({"id": [2], "name": ["c"]}), mode="append")
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.rows("t") == [(1, "a"), (2, "c")]
    assert case.rows("first") == [(1, 1)]
    assert case.rows("own") == [(1,)]
    assert case.columns("files") == ["id", "name", "file"]
    there = {file.rpartition("/")[2] for file in DeltaTable(path).file_uris()}
    assert {file for _, _, file in case.rows("files")} == there
