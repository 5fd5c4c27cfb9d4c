"""cloudFiles reads the formats that Auto Loader reads, each with its own way of finding what does not fit."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import orc, parquet
from pyspark.sql import SparkSession
from tests.in_step import Scenario, Share, Steps, in_step
from tests.integration.test_cloud_files_take_each_file_once import source

from headwater_spark.testing.local_session import forget_tables


def rescued(text: str | None) -> dict | None:
    data = json.loads(text) if text else None
    if data:
        assert data.pop("_file_path").startswith("file:/")
    return data


def put(case, name: str, text: str) -> None:
    (case.landing / name).write_text(text)


def csv_columns_go_by_each_files_header(case: Share) -> Steps:
    """Columns in another order, wrong types, unknown columns, surplus cells: by name, and nothing is lost."""
    case.rewrite(source("schemaHints=id INT", "schemaEvolutionMode=rescue", schema="", source_format="csv"))
    put(case, "a.csv", 'id,name,code\n1,"x, y",007\n')
    yield
    put(case, "b.csv", "code,z,id\n1.50,9,2\n,,x\n")
    put(case, "c.csv", "id,name,code\n4,d,e,surplus\n5\n")
    assert (yield).state == "COMPLETED"
    rows = [
        (*row[:3], rescued(row[3])) for row in case.rows("bronze", "id, name, code, _rescued_data", "1, 2, 3")
    ]
    assert sorted(rows, key=str) == sorted(
        [
            (1, "x, y", "007", None),
            (2, None, "1.50", {"z": "9"}),
            (None, None, None, {"id": "x"}),
            (4, "d", "e", {"_corrupt_record": "4,d,e,surplus"}),
            (5, None, None, {"_corrupt_record": "5"}),
        ], key=str,
    )  # fmt: skip


def csv_takes_new_columns(case: Share) -> Steps:
    """A new column of a header is a new field; cells keep their text unless types are asked for."""
    case.rewrite(source(schema="", source_format="csv"))
    put(case, "a.csv", "id,name\n01,a\n")
    yield
    put(case, "b.csv", "z,id\n9,02\n")
    assert (yield).state == "COMPLETED"
    assert case.rows("bronze", "id, name, z, _rescued_data") == [
        ("01", "a", None, None),
        ("02", None, "9", None),
    ]


def files_in_another_encoding(case: Share) -> Steps:
    """CSV in an encoding that is given, XML in the one it names: names, values and what is rescued are what was written."""
    table = source("!encoding=ISO-8859-1", "schemaEvolutionMode=rescue", schema="", source_format="csv")
    elements = source("!rowTag=r", schema="", source_format="xml").replace("bronze", "texts")
    both = [
        text.replace("LANDING", f"LANDING + '/*.{kind}'")
        for text, kind in ((table, "csv"), (elements, "xml"))
    ]
    case.rewrite("\n".join(both))
    write = partial(Path.write_text, encoding="ISO-8859-1")
    write(case.landing / "a.csv", "größe,preis\nhalb,5 £\nüber,7 £\n")
    write(
        case.landing / "a.xml",
        "<?xml version='1.0' encoding='ISO-8859-1'?><rows><r><größe>5 £</größe></r></rows>",
    )
    yield
    write(case.landing / "b.csv", "größe,preis,straße\nvoll,9 £,Überweg\n")
    report = yield
    assert report.state == "COMPLETED", report.error
    rows = [(*row[:2], rescued(row[2])) for row in case.rows("bronze", '"größe", preis, _rescued_data')]
    assert rows == [("halb", "5 £", None), ("voll", "9 £", {"straße": "Überweg"}), ("über", "7 £", None)]
    assert case.rows("texts", '"größe"') == [("5 £",)]


def columnar_files(case: Share, kind: str, mode: str) -> Steps:
    """New columns of Parquet and ORC files become columns, or are rescued with their values."""
    write = {"parquet": parquet.write_table, "orc": orc.write_table}[kind]
    case.rewrite(source(f"schemaEvolutionMode={mode}", schema="", source_format=kind))
    write(pa.table({"id": pa.array([1], pa.int32())}), case.landing / f"a.{kind}")
    yield
    write(pa.table({"id": pa.array([2], pa.int32()), "z": [9]}), case.landing / f"b.{kind}")
    assert (yield).state == "COMPLETED"
    if mode == "addNewColumns":
        assert case.rows("bronze", "id, z, _rescued_data") == [(1, None, None), (2, 9, None)]
    else:
        rows = case.rows("bronze", "id, _rescued_data")
        assert [(key, rescued(text)) for key, text in rows] == [(1, None), (2, {"z": 9})]


def avro(case: Share) -> Steps:
    """Avro files are read, and a new field becomes a column."""
    case.rewrite(source(schema="", source_format="avro"))
    for number, columns in enumerate((["1 as id"], ["2 as id", "9 as z"])):
        folder = case.root / f"made-{number}"
        SparkSession.active().range(1).selectExpr(*columns).coalesce(1).write.format("avro").save(str(folder))
        next(folder.glob("*.avro")).rename(case.landing / f"{number}.avro")
        assert (yield).state == "COMPLETED"
    assert case.rows("bronze", "id, z") == [(1, None), (2, 9)]


def text_and_binary(case: Share) -> Steps:
    """Text files give lines, binary ones their content; both have a fixed schema."""
    case.rewrite(source(schema="", source_format="text"))
    put(case, "a.txt", "one\ntwo\n")
    yield
    assert case.rows("bronze", order="1") == [("one",), ("two",)]
    case.rewrite(source(schema="", source_format="binaryFile").replace("bronze", "blobs"))
    yield
    assert case.rows("blobs", "length, content") == [(8, b"one\ntwo\n")]


def json_over_several_lines(case: Share) -> Steps:
    """With multiLine a file is one record or an array of them."""
    case.rewrite(source("!multiLine=true", "schemaHints=id INT", schema=""))
    put(case, "a.json", '{\n "id": 1,\n "n": "x"\n}')
    put(case, "b.json", '[\n {"id": 2},\n {"id": "y"}\n]')
    yield
    rows = case.rows("bronze", "id, n, _rescued_data")
    assert sorted(((*row[:2], rescued(row[2])) for row in rows), key=str) == sorted(
        [(1, "x", None), (2, None, None), (None, None, {"id": "y"})], key=str
    )


def records_as_one_variant(case: Share) -> Steps:
    """Whatever fields they have, a record is one value; the text of what is no JSON stands in the column that is named for it."""
    reading = source("!singleVariantColumn=v", "!columnNameOfCorruptRecord=bad", schema="")
    case.rewrite(f'{reading.rstrip()[:-1]}.selectExpr("to_json(v) v", "bad"))')
    put(case, "a.json", '{"id": 1}\n{"n": {"x": [true]}}\n')
    yield
    put(case, "b.json", '[{"id": 2}]\nno json\n{"Id": "3"}\n')
    report = yield
    assert report.state == "COMPLETED", report.error
    assert sorted(case.rows("bronze"), key=str) == sorted(
        [
            ('{"id":1}', None),
            ('{"n":{"x":[true]}}', None),
            ('[{"id":2}]', None),
            (None, "no json"),
            ('{"Id":"3"}', None),
        ],
        key=str,
    )


def xml(case: Share) -> Steps:
    """Elements are rows; a new element becomes a column, what does not fit its type is rescued whole; without types all is text."""
    typed = source("!rowTag=r", "inferColumnTypes=true", schema="", source_format="xml")
    plain = source("!rowTag=r", schema="", source_format="xml").replace("bronze", "texts")
    case.rewrite(f"{typed}\n{plain}")
    put(case, "a.xml", "<rows><r><id>1</id><place><zip>07</zip></place></r></rows>")
    assert (yield).state == "COMPLETED"
    put(case, "b.xml", "<rows><r><id>2</id><place k='3'/></r><r><id>x</id></r></rows>")
    report = yield
    assert report.state == "COMPLETED", report.error
    rows = [
        (key, rescued(text)) for key, text in case.rows("bronze", "id, _rescued_data", order="id nulls last")
    ]
    assert rows[:2] == [(1, None), (2, None)]
    assert rows[2][0] is None
    assert "<id>x</id>" in rows[2][1]["_corrupt_record"]
    assert case.rows("texts", "id, _rescued_data") == [("1", None), ("2", None), ("x", None)]
    places = {
        row["id"]: row["place"] for row in DeltaTable(str(case.table("texts"))).to_pyarrow_table().to_pylist()
    }
    assert places == {"1": {"zip": "07", "_k": None}, "2": {"zip": None, "_k": "3"}, "x": None}


def columnar(kind: str, mode: str) -> Scenario:
    """The scenario of a kind of file in a mode."""

    def scenario(case: Share) -> Steps:
        yield from columnar_files(case, kind, mode)

    scenario.__name__, scenario.__doc__ = f"{kind} files, {mode}", columnar_files.__doc__
    return scenario


SCENARIOS = (
    csv_columns_go_by_each_files_header,
    csv_takes_new_columns,
    files_in_another_encoding,
    *(columnar(kind, mode) for kind in ("parquet", "orc") for mode in ("addNewColumns", "rescue")),
    avro,
    text_and_binary,
    json_over_several_lines,
    records_as_one_variant,
    xml,
)


def test_each_format(tmp_path: Path, spark: SparkSession):
    """Each scenario holds what its docstring says."""
    in_step(tmp_path, ("bronze", "blobs", "texts"), SCENARIOS)
    forget_tables(spark)
