"""Each schema evolution mode does what Auto Loader's does, with the rows of the reference's example."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pyspark.sql import SparkSession
from tests.in_step import Share, Steps, in_step

from headwater.graph.stored_manifest import stored_manifest
from headwater_spark.sources.cloud_files.start import prepared
from headwater_spark.testing.local_session import forget_tables

FOUR = [
    {"id": 1, "name": "a"},
    {"id": "x", "name": "b"},
    {"id": 2, "Name": "c"},
    {"id": 3, "name": "d", "z": 9},
]


def source(*options: str, schema: str = "") -> str:
    """A table from the landing folder; ``options``: ``key=value`` with or without the prefix."""
    chain = "".join(
        f".option({('' if key.startswith('!') else 'cloudFiles.') + key.lstrip('!')!r}, {value!r})"
        for key, _, value in (option.partition("=") for option in options)
    )
    schema_call = f".schema({schema!r})" if schema else ""
    return f"""
@dp.table
def bronze():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json"){chain}{schema_call}.load(LANDING))
"""


def rescued(case, columns: str = "id, name, _rescued_data") -> list[tuple]:
    """Rows with the rescued data parsed, and its file's path taken off after a look at it."""
    rows = []
    for *values, text in case.rows("bronze", columns, "1, 2"):
        data = json.loads(text) if text else None
        if data:
            assert data.pop("_file_path").startswith(f"file:{case.landing}/")
        rows.append((*values, data))
    return sorted(rows, key=str)


WITHOUT_Z = [
    (1, "a", None),
    (2, None, {"Name": "c"}),
    (None, "b", {"id": "x"}),
]


def rescue_keeps_what_does_not_fit(case: Share) -> Steps:
    """Wrong type, other letter case, new field: all four rows of the reference come out as it says, and no column. A file that is
    proven to have no new key is read the quick way, and rows of wrong types are rescued there too.
    """
    case.rewrite(source("schemaEvolutionMode=rescue", "!rescuedDataColumn=_rescued_data",
                           schema="id INT, name STRING"))  # fmt: skip
    case.land([FOUR[0], {"id": 5.5, "name": "e"}, {"id": 6}])
    assert (yield).state == "COMPLETED"
    case.land(FOUR[1:])
    case.land(["not json", "", '[{"id": 7, "name": "g"}, {"id": 8, "name": "h"}]', '{"id": 9, "name": null}'])
    assert (yield).state == "COMPLETED"
    assert case.columns("bronze") == ["id", "name", "_rescued_data"]
    assert rescued(case) == sorted(
        [
            *WITHOUT_Z, (3, "d", {"z": 9}),
            (None, "e", {"id": 5.5}), (6, None, None), (7, "g", None), (8, "h", None), (9, None, None),
            (None, None, {"_corrupt_record": "not json"}),
        ], key=str,
    )  # fmt: skip


def test_what_fits_is_read_as_it_is_and_what_comes_late_is_not_missed(pipeline, monkeypatch):
    """Files that hold nothing to rescue take Spark's plain way; one that lands after the look fails it, and is rescued."""
    case = pipeline(source("inferColumnTypes=true", "schemaEvolutionMode=rescue"))
    case.land(['{"id": 1, "name": "a"}', '{"id": 2, "name": "\u00e9"}'])
    reads = []

    def late_file_after(*arguments, **options):
        reads.append(prepared(*arguments, **options))
        if len(reads) == 1:
            case.land([{"id": "x", "name": "b"}, {"id": 3, "z": 9}])
        return reads[-1]

    monkeypatch.setattr("headwater_spark.sources.cloud_files.source.prepared", late_file_after)
    assert case.update().state == "COMPLETED"
    assert [read.fits for read in reads] == [True, False]
    assert any("starts again" in event["message"] for event in case.events(flow="bronze"))
    expected = [(1, "a", None), (2, "\u00e9", None), (3, None, {"z": 9}), (None, "b", {"id": "x"})]
    assert rescued(case) == sorted(expected, key=str)
    case.land([{"id": 4, "name": "c"}])
    assert case.update()["bronze"].output_rows == 1
    assert reads[-1].fits
    assert rescued(case) == sorted([*expected, (4, "c", None)], key=str)


def what_spark_refuses_is_rescued(case: Share) -> Steps:
    """Records that another parser takes and Spark's does not are found in the rescued data, not lost: over two lines, a
    number that JSON does not have, and one that is too long.
    """
    case.rewrite(source(schema="id DOUBLE, name STRING, _rescued_data STRING")
                    .replace(".schema(", ".option('rescuedDataColumn', '_rescued_data').schema("))  # fmt: skip
    texts = {"lines": '{\n"id": 1}\n', "inf": '{"id": Inf}\n', "long": '{"id": 0.' + "1" * 1100 + "}\n"}
    for name, text in texts.items():
        (case.landing / f"{name}.json").write_text(text)
    assert (yield).state == "COMPLETED"
    records = [(id_, json.loads(text)) for id_, text in case.rows("bronze", "id, _rescued_data", "2")]
    assert {id_ for id_, _ in records} == {None}
    files = {data.pop("_file_path").rpartition("/")[2] for _, data in records}
    assert files == {f"{name}.json" for name in texts}
    assert all(data for _, data in records)


def add_new_columns_restarts_once(case: Share) -> Steps:
    """A new field stops the stream, becomes the last column, and the same update goes on: each row once. So does a field that is new
    in the structs of an array, at any depth, and joins the type.
    """
    case.rewrite(source("inferColumnTypes=true"))
    case.land([{**FOUR[0], "items": [{"sku": "a", "parts": [{"n": 1}]}]}])
    assert (yield).state == "COMPLETED"
    assert case.columns("bronze") == ["id", "items", "name", "_rescued_data"]
    case.land(
        [
            *FOUR[1:],
            {"id": 4, "items": [{"sku": "b", "parts": []}, {"sku": "c", "parts": [{"n": 2, "m": 3}]}]},
        ]
    )
    report = yield
    assert (report.state, report["bronze"].output_rows) == ("COMPLETED", 4)
    assert set(case.columns("bronze")) == {"id", "items", "name", "_rescued_data", "z"}
    assert rescued(case, "id, name, z, _rescued_data") == sorted(
        [
            (1, "a", None, None),
            (2, None, None, {"Name": "c"}),
            (None, "b", None, {"id": "x"}),
            (3, "d", 9, None),
            (4, None, None, None),
        ],
        key=str,
    )
    assert case.rows("bronze", "id, items[1]['parts'], items[2]['parts']", "1")[::3] == [
        (1, [{"n": 1, "m": None}], None),
        (4, [], [{"n": 2, "m": 3}]),
    ]
    versions = sorted(case.project().state_folder.glob(f"schemas/{case.own('bronze')}/*/_schemas/*"))
    assert [path.name for path in versions] == ["0", "1"]
    assert "new: z" in versions[1].read_text()
    assert "z: bigint" in versions[1].read_text()
    again = [e["message"] for e in case.events(flow="bronze") if "starts again" in e["message"]]
    assert [("items" in message, "z" in message) for message in again] == [(True, True)]


def all_strings_unless_types_are_asked_for(case: Share) -> Steps:
    """Without inferColumnTypes every column is a STRING, nested ones as their JSON text; hints win over both."""
    case.rewrite(source("schemaHints=id BIGINT, more.deep INT, day DATE"))
    case.land([{"id": 1, "price": 2.50, "more": {"deep": 3}, "list": [1, 2]}])
    yield
    columns = {c.name: c.type for c in stored_manifest(case.project()).dataset(case.own("bronze")).columns}
    assert columns == {
        "id": "bigint", "list": "string", "more": "struct<deep:int>", "price": "string", "day": "date",
        "_rescued_data": "string",
    }  # fmt: skip
    assert case.rows("bronze", "id, list, more['deep'], price, day, _rescued_data") == [
        (1, "[1, 2]", 3, "2.5", None, None)
    ]


def fail_on_new_columns(case: Share) -> Steps:
    """The stream fails, nothing of the batch is written, and it goes on once the file is gone; fields inside arrays are noticed as
    well, and it says where they are.
    """
    case.rewrite(source("schemaEvolutionMode=failOnNewColumns", "inferColumnTypes=true"))
    case.land([{**FOUR[0], "items": [{"sku": "a"}]}])
    yield
    case.land([{**FOUR[3], "items": [{"sku": "b"}, {"sku": "c", "size": 2}]}])
    for _ in range(2):
        report = yield
        assert (report.state, report.error.condition) == ("FAILED", "UNKNOWN_FIELDS")
        assert re.search(r"\bz\b", report.error.what)
        assert "items.element.size" in report.error.what
    assert case.rows("bronze", "id", "1") == [(1,)]
    (case.landing / "00002.json").unlink()
    case.land([{"id": 4, "name": "e"}])
    assert (yield).state == "COMPLETED"
    assert case.rows("bronze", "id", "1") == [(1,), (4,)]


def none_ignores_new_columns(case: Share) -> Steps:
    """New fields are ignored, and rescued only where a column is asked for by name."""
    options = ["schemaEvolutionMode=none", "inferColumnTypes=true"]
    plain = source(*options).replace("def bronze", "def plain")
    case.rewrite(source(*options, "!rescuedDataColumn=_rescued_data") + plain)
    case.land(FOUR[:1])
    yield
    case.land(FOUR[1:])
    assert (yield).state == "COMPLETED"
    assert rescued(case) == sorted([*WITHOUT_Z, (3, "d", {"z": 9})], key=str)
    assert case.columns("plain") == ["id", "name"]
    assert len(case.rows("plain")) == 4


def type_widening(case: Share) -> Steps:
    """A number that an INT can't hold widens the column to BIGINT; a text in its place is rescued."""
    text = source("schemaEvolutionMode=addNewColumnsWithTypeWidening", "schemaHints=id INT")
    properties = '@dp.table(table_properties={"delta.enableTypeWidening": "true"})\n'
    case.rewrite(text.replace("@dp.table\n", properties))
    case.land(FOUR[:1])
    assert (yield).state == "COMPLETED"
    case.land([{"id": 5_000_000_000, "name": "b"}, {"id": "x", "name": "c"}])
    report = yield
    assert report.state == "COMPLETED", report.error
    # delta-rs does not read tables with this feature.
    table = SparkSession.active().read.format("delta").load(str(case.table("bronze")))
    assert dict(table.dtypes)["id"] == "bigint"
    rows = [(r["id"], r["name"], json.loads(r["_rescued_data"] or "{}").get("id")) for r in table.collect()]
    assert sorted(rows, key=str) == [(1, "a", None), (5_000_000_000, "b", None), (None, "c", "x")]


# The items of a record, and what of them is rescued.
IN_ARRAYS: list[tuple[list, list | None]] = [
    ([{"sku": "b"}, {"sku": "c", "size": 2}], [None, {"size": 2}]),
    ([{"sku": "b", "Sku": "B"}], [{"Sku": "B"}]),
    ([{"sku": "b", "at": {"x": 1, "y": 2}}], [{"at": {"y": 2}}]),
    ([{"sku": 1.5, "at": {"x": "no", "y": 2}}], [{"sku": 1.5, "at": {"x": "no", "y": 2}}]),
    ([{"sku": "b", "at": None}, None], None),
    ([], None),
]


def nested_fields_are_rescued(case: Share) -> Steps:
    """In mode rescue what is new inside structs and arrays, or does not fit, is kept where it stood; an element without any is null."""
    case.rewrite(source("inferColumnTypes=true", "schemaEvolutionMode=rescue"))
    case.land([{"id": 1, "s": {"a": 1}, "l": [{"x": 1}], "items": [{"sku": "a", "at": {"x": 1}}]}])
    yield
    # Files without anything to rescue are read in another way, so they come by themselves.
    for nothing in (False, True):
        for number, (items, lost) in enumerate(IN_ARRAYS, start=2):
            if (lost is None) is nothing:
                case.land([{"id": number, "items": items}])
        if not nothing:
            case.land([{"id": 20, "s": {"a": "b", "q": 2}, "l": [{"x": "y"}]}])
        report = yield
        assert report.state == "COMPLETED", report.error
    expected = {
        number: {"items": lost} if lost is not None else None
        for number, (_, lost) in enumerate(IN_ARRAYS, start=2)
    }
    in_structs = {"s": {"a": "b", "q": 2}, "l": [{"x": "y"}]}
    assert dict(rescued(case, "id, _rescued_data")) == {1: None, 20: in_structs, **expected}
    assert [row[1] for row in case.rows("bronze", "id, s['a']", "1") if row[0] in (1, 20)] == [1, None]


SCENARIOS = (
    rescue_keeps_what_does_not_fit,
    what_spark_refuses_is_rescued,
    add_new_columns_restarts_once,
    all_strings_unless_types_are_asked_for,
    fail_on_new_columns,
    none_ignores_new_columns,
    type_widening,
    nested_fields_are_rescued,
)


def test_each_mode(tmp_path: Path, spark: SparkSession):
    """Each scenario holds what its docstring says."""
    in_step(tmp_path, ("bronze", "plain"), SCENARIOS)
    forget_tables(spark)
