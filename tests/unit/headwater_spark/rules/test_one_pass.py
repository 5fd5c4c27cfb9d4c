"""What is rendered of a row that is to be quarantined, while the batch is judged."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructType, TimestampType
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions

from headwater.definitions.expectation import Expectation, ViolationAction
from headwater_spark.plans.names import quoted
from headwater_spark.quarantine import quarantine_table
from headwater_spark.quarantine.quarantine_table import _origin, _row_text
from headwater_spark.rules import expectations, judgement, one_pass, source_records
from headwater_spark.rules.judgement import mark_rows, own_columns
from headwater_spark.rules.one_pass import ROW_TEXT, render
from headwater_spark.rules.source_records import SOURCE, has_bytes

RULES = [
    Expectation("bad", "bad", ViolationAction.QUARANTINE),
    Expectation("odd", "odd", ViolationAction.DROP),
]
PLACE = (
    StructType()
    .add("topic", "string")
    .add("partition", "integer")
    .add("offset", "long")
    .add("file", "string")
)


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_functions(monkeypatch, expectations, judgement, one_pass, source_records, quarantine_table)


def rendered(*values: dict[str, Any], record: Any = None) -> Frame:
    """Rows that are marked and rendered; ``record``: the type of their records at the source."""
    types = {} if record is None else {SOURCE: StructType([*PLACE.fields]).add("record", record)}
    columns = ["id", "text", "bad", "odd", *([SOURCE] if types else [])]
    frame = Frame(values, columns, types={"text": StringType(), **types})
    return render(mark_rows(frame, RULES), RULES)  # type: ignore[arg-type, return-value]


def row(number: int, *, bad: bool | None = True, odd: bool | None = True, text: str = "") -> dict[str, Any]:
    """A row, and what its two rules give."""
    return {"id": number, "text": text, "bad": bad, "odd": odd}


def test_only_rows_for_the_quarantine_are_rendered():
    """Of a row that is kept, dropped or judged by NULL nothing is rendered, and the row's own columns stay what they are."""
    frame = rendered(
        row(0), row(1, bad=False), row(2, odd=False), row(3, bad=None), row(4, bad=False, odd=False)
    )
    texts = {each["id"]: json.loads(each[ROW_TEXT]) for each in frame.rows if each[ROW_TEXT] is not None}
    assert texts == {1: row(1, bad=False), 4: row(4, bad=False, odd=False)}
    assert own_columns(frame) == ["id", "text", "bad", "odd"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "room"), [(1, 0), (900, 0), (1_001, 1), (7_900, 1), (8_001, 2), (63_000, 2), (64_001, None)]
)
def test_the_room_that_a_row_takes(size: int, room: int | None):
    """By its JSON: each row is in one class of sizes, the largest in none."""
    (found,) = rendered(row(1, bad=False, text="x" * size)).rows
    assert [found[name] for name in one_pass._ROOMS] == [1 if number == room else None for number in range(3)]
    (kept,) = rendered(row(1, text="x" * size)).rows
    assert [kept[name] for name in one_pass._ROOMS] == [None] * 3


def test_the_record_counts_as_well():
    """A small row of a large record takes the room of both."""
    place = {"topic": None, "partition": None, "offset": None, "file": "f"}
    large = {**row(1, bad=False), SOURCE: {**place, "record": {"line": "x" * 2_000}}}
    (found,) = rendered(large, record=StructType().add("line", "string")).rows
    assert [found[name] for name in one_pass._ROOMS] == [None, 1, None]


def test_records_are_rendered_once():
    """A record becomes JSON with Kafka's value beside it, which is what the quarantine stores; a second time changes nothing."""
    place = {"topic": "t", "partition": 1, "offset": 2, "file": None}
    bad = {**row(1, bad=False), SOURCE: {**place, "record": {"value": "v", "key": 7}}}
    good = {**row(2), SOURCE: {**place, "record": {"value": "w", "key": 8}}}
    kind = StructType().add("value", BinaryType()).add("key", LongType())
    frame: Any = rendered(bad, good, record=kind)
    held, kept = frame.rows
    assert kept[SOURCE] is None
    assert held[SOURCE] == {**place, "record": '{"value": "v", "key": 7}', "value": "v"}
    assert render(frame, RULES) is frame
    text = StructType([*PLACE.fields]).add("record", "string").add("value", BinaryType())
    frame.types[SOURCE] = text
    assert has_bytes(frame.schema)
    stored = frame.where(expectations.any_broken(RULES, ViolationAction.QUARANTINE)).select(
        _row_text(frame).alias("row"), *[value.alias(name) for name, value in _origin(frame).items()]
    )
    (given,) = stored.rows
    assert json.loads(given["row"]) == row(1, bad=False)
    assert given["_source_record"] == '{"value": "v", "key": 7}'
    assert (given["_source_value"], given["_topic"], given["_offset"]) == ("v", "t", 2)


def test_records_that_are_text_stay():
    """Of a union of unlike sources the record is JSON already."""
    place = {"topic": None, "partition": None, "offset": None, "file": "f"}
    value = {**place, "record": '{"a": 1}', "value": None}
    (found,) = rendered({**row(1, bad=False), SOURCE: value}, record=StringType()).rows
    assert found[SOURCE] == value


def test_what_is_collected_of_a_row(monkeypatch: pytest.MonkeyPatch):
    """The rows of each class of sizes, up to its limit, without the columns that tell the classes; counted is last."""
    asked: list[Any] = []
    frame: Any = SimpleNamespace(columns=["id", ROW_TEXT, *one_pass._ROOMS], sparkSession=None)
    frame.observe = lambda *given: asked.append(given) or frame
    functions = SimpleNamespace(
        col=str, struct=lambda *columns: columns,
        min_by=lambda values, by, most: SimpleNamespace(alias=lambda name: (name, values, by, most)),
    )  # fmt: skip
    monkeypatch.setattr(one_pass, "F", functions)
    monkeypatch.setattr(one_pass, "render", lambda *_: frame)
    monkeypatch.setattr(one_pass, "_room", lambda _: ((1, 30), (2, 20), (3, 10)))
    monkeypatch.setattr(one_pass, "fate_counts", lambda _: ["counts"])
    observation: Any = SimpleNamespace(rows="rows", counts="counts")
    one_pass.observe_rows(frame, RULES, observation)
    own = (quoted("id"), quoted(ROW_TEXT))
    held = [(f"held_{n}", own, one_pass._ROOMS[n], most) for n, most in enumerate((30, 20, 10))]
    assert asked == [("rows", *held), ("counts", "counts")]


@pytest.mark.parametrize(
    ("rows", "quarantined", "slices"),
    [
        (0, 0, 1),
        (7, 7, 1),
        (9_999, 9_999, 1),
        (10_000, 10_000, 2),
        (90_000, 90_000, 4),
        (8, 7, None),
        (6, 7, None),
    ],
)
def test_rows_that_were_collected(
    monkeypatch: pytest.MonkeyPatch, rows: int, quarantined: int, slices: int | None
):
    """Many are written by several tasks, at most one a core, few by one; other than were counted, they are not taken for all."""

    class Rows(list[int]):
        size, addAll = list.__len__, list.extend  # noqa: N815 - Java's names

    java = {
        "java.util.ArrayList": Rows,
        "scala.jdk.javaapi.CollectionConverters": SimpleNamespace(asJava=lambda given: given),
    }
    monkeypatch.setattr(one_pass, "java_class", lambda _, name: java[name])
    monkeypatch.setattr(one_pass, "DataFrame", lambda frame, _: frame)
    quality = SimpleNamespace(quarantined=quarantined)
    monkeypatch.setattr(one_pass, "read_fates", lambda *_: quality)
    rendered = SimpleNamespace(drop=lambda *_: SimpleNamespace(_jdf=SimpleNamespace(schema=lambda: "schema")))
    monkeypatch.setattr(one_pass, "render", lambda *_: rendered)
    context = SimpleNamespace(
        defaultParallelism=4,
        _jsc=SimpleNamespace(parallelize=lambda given, number: (len(given), number)),
    )
    made = SimpleNamespace(createDataFrame=lambda given, schema: (*given, schema))
    session = SimpleNamespace(_jvm=None, sparkContext=context, _jsparkSession=made)
    collected = {"held_0": list(range(rows // 2)), "held_1": None, "held_2": list(range(rows - rows // 2))}
    seen = SimpleNamespace(_jo=SimpleNamespace(getAsJava=lambda: collected))
    observation: Any = SimpleNamespace(rows=seen, counts=SimpleNamespace(get=None))
    marked: Any = SimpleNamespace(sparkSession=session)
    answer = one_pass.read_observed(marked, RULES, observation)
    assert answer == (quality, None if slices is None else (rows, slices, "schema"))


@pytest.mark.parametrize(("moment", "fits"), [("1899-12-31", False), ("1900-01-01", True), (None, True)])
def test_rows_with_times_of_another_calendar(moment: str | None, fits: bool):
    """They would not come back as they were, so that none is collected; times of the record, which is text by then, do not count."""
    place = {"topic": None, "partition": None, "offset": None, "file": "f", "record": {"at": "1850-01-01"}}
    kinds = {"at": TimestampType(), SOURCE: StructType([*PLACE.fields]).add("record", StructType().add("at", TimestampType()))}  # fmt: skip
    values = {**row(1, bad=False), "at": moment, SOURCE: place}
    frame: Any = Frame([values], ["id", "at", "bad", "odd", SOURCE], types=kinds)
    (seen,) = render(mark_rows(frame, RULES), RULES).rows  # type: ignore[attr-defined]
    assert [seen[name] for name in one_pass._ROOMS] == [1 if fits else None, None, None]
