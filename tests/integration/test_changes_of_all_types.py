"""AUTO CDC on columns of all types: whatever the types of keys, sequence and values, and whoever decides, the rows are the oracle's."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.change_table import Changes, flow

from headwater.testing.auto_cdc import expected_scd1, expected_scd2
from headwater_spark.auto_cdc import merge_history, merge_latest
from headwater_spark.auto_cdc.on_driver import rows as driver_rows
from headwater_spark.plans.session_settings import session_settings

# Types, and what rows of them have one after the other, as SQL.
ON_THE_DRIVER: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("true", "NULL", "false"),
    "TINYINT": ("-128", "127", "NULL"),
    "SMALLINT": ("-32768", "32767", "NULL"),
    "BIGINT": ("-9223372036854775808", "9223372036854775807", "NULL"),
    "FLOAT": ("'NaN'", "0.5", "NULL", "'-Infinity'"),
    "DOUBLE": ("'NaN'", "-0.0", "0.1", "NULL"),
    "DECIMAL(38, 18)": ("12345678901234567890.123456789012345678", "0", "NULL"),
    "STRING": ("''", "'é\U0001f600'", "NULL"),
    "BINARY": ("X''", "X'00FF'", "NULL"),
    "DATE": ("DATE'0001-01-02'", "DATE'9999-12-30'", "NULL"),
    "TIMESTAMP": ("TIMESTAMP'0001-01-02 12:00:00Z'", "NULL", "TIMESTAMP'9999-12-30 23:59:59.999999Z'"),
    # Both are half past one where clocks are put back.
    "ARRAY<TIMESTAMP>": (
        "array(TIMESTAMP'2026-11-01 05:30:00.123456Z', NULL)",
        "array(TIMESTAMP'2026-11-01 06:30:00Z')",
        "NULL",
    ),
    "MAP<STRING, TIMESTAMP>": ("map('a', TIMESTAMP'2026-03-29 01:30:00Z', 'b', NULL)", "map()", "NULL"),
    "STRUCT<a: INT, b: STRUCT<t: TIMESTAMP, d: ARRAY<DECIMAL(10, 2)>>>": (
        "named_struct('a', 1, 'b', named_struct('t', TIMESTAMP'2026-03-29 01:30:00Z', 'd', array(1.50, NULL)))",
        "named_struct('a', 2, 'b', NULL)",
        "NULL",
    ),
}
IN_SPARK: dict[str, tuple[str, ...]] = {
    "TIMESTAMP_NTZ": ("TIMESTAMP_NTZ'2026-03-29 01:30:00.123456'", "NULL"),
    "STRUCT<a: INT NOT NULL>": ("named_struct('a', 1)", "named_struct('a', 2)"),
    "VARIANT": ("parse_json('{\"a\": 1}')", "NULL"),
}
# Names that have to be quoted, in which a column may be named in SQL.
SEQUENCE, LEFT_OUT = "`a``t`", ("op", "a`t")
KINDS: dict[str, dict[str, Any]] = {
    "type 1": {},
    "type 1, sequence left out": {"except_columns": LEFT_OUT},
    "type 2": {"history": True, "except_columns": LEFT_OUT},
}
# How a number becomes a key, or a sequence. Arrow compares the first ones as Spark does, the last ones never reach it.
COMPARED = ("CAST({} AS TINYINT)", "CAST({} AS BIGINT)", "CONCAT('é', {})", "DATE'1500-01-01' + {}",
            "TIMESTAMP'0001-01-02 00:00:00Z' + make_dt_interval({})")  # fmt: skip
CARRIED = (
    "CAST({} AS DECIMAL(38, 2))",
    "CAST({} AS DOUBLE) / 3",
    "{} > 2",
    "CAST(CONCAT('k', {}) AS BINARY)",
)
OTHERS = ("CAST(DATE'2026-01-01' + {} AS TIMESTAMP_NTZ)", "named_struct('a', {})")
LOCAL, SPARK = driver_rows.LOCAL_ROWS, -1
# Key, sequence, operation; the keys above ten are events of a second batch that come with the third.
START = ((1, 10, "U"), (2, 10, "U"), (2, 12, "D"), (3, 10, "U"), (5, 10, "U"))
# New, newer, late, gone, equal and repeated ones, and one that is as it was.
NEXT = ((1, 20, "U"), (1, 15, "U"), (2, 5, "U"), (3, 20, "D"), (4, 10, "U"), (4, 20, "U"), (5, 20, "U"))
LAST = ((1, 17, "U"), (1, 30, "U"), (1, 30, "U"), (2, 20, "U"), (3, 15, "U"), (4, 5, "U"), (5, 30, "U"))


def others(batch: tuple[tuple[int, int, str], ...]) -> tuple[tuple[int, int, str], ...]:
    """The same events of other keys."""
    return tuple((n + 10, at, op) for n, at, op in batch)


BATCHES = ((*START, *others(START)), NEXT, (*LAST, *others(NEXT)))


@dataclass(frozen=True)
class Case:
    """A table: its kind, its keys, its sequence and its values.

    ``limits``: up to how many events of each batch come to the driver. ``merges``: whether a MERGE may write the second.
    ``rows``: how many the table has in the end.
    """

    kind: str
    keys: tuple[str, ...]
    sequence: str
    values: dict[str, tuple[str, ...]]
    limits: tuple[int, ...] = (LOCAL, LOCAL, SPARK)
    merges: bool = True
    rows: int = 7
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return ("k`ey", *(f"key{n}" for n in range(1, len(self.keys))))


ONE = {"TIMESTAMP": ON_THE_DRIVER["TIMESTAMP"]}
VECTORS = {"delta.enableDeletionVectors": "true"}
# Files have no least and greatest values.
NO_BOUNDS = {"delta.dataSkippingNumIndexedCols": "0"}
IN_TURN = "TIMESTAMP'2026-11-01 05:30:00Z' + make_interval(0, 0, 0, 0, 0, {}, 0)"
CASES = {
    # Rows of these are looked up, decided and written on the driver.
    "type 1, all values": Case("type 1", COMPARED, IN_TURN, ON_THE_DRIVER, merges=False),
    "type 1, sequence left out": Case("type 1, sequence left out", COMPARED, COMPARED[3], ONE, (LOCAL, LOCAL), False, properties=NO_BOUNDS),
    "type 2, all values": Case("type 2", COMPARED, IN_TURN, ON_THE_DRIVER, (LOCAL, LOCAL), False, 23, VECTORS),
    # These come to the driver, and Spark compares them there; files can't be searched for some of the keys.
    "type 1, sequence left out, keys that are carried": Case("type 1, sequence left out", ("{}", *CARRIED), "CAST({} AS FLOAT) / 3", ONE, (LOCAL, LOCAL)),
    "type 2, keys that are carried": Case("type 2", CARRIED, "CAST({} AS DECIMAL(38, 2))", ONE, (LOCAL, LOCAL), rows=21),
    # Spark alone reads these.
    "type 1, other types": Case("type 1", (*COMPARED, *CARRIED, *OTHERS), "LPAD({}, 3, '0')", IN_SPARK, (LOCAL, LOCAL)),
    "type 1, sequence left out, other types": Case("type 1, sequence left out", OTHERS, OTHERS[0], IN_SPARK, (LOCAL, LOCAL)),
    "type 2, other types": Case("type 2", (COMPARED[4], CARRIED[0], *OTHERS), "named_struct('a', 1, 'b', {})", IN_SPARK, (LOCAL, LOCAL), rows=19),
}  # fmt: skip


def batches_of(case: Case) -> list[tuple[tuple[int, int, str], ...]]:
    """The case's batches: where all are decided in one way, the second has the events of the third, too."""
    return list(BATCHES) if len(case.limits) == len(BATCHES) else [BATCHES[0], (*BATCHES[1], *BATCHES[2])]


def frame_of(spark: SparkSession, case: Case, step: int) -> DataFrame:
    """A batch of events with a column of each type."""
    rows = []
    for number, (n, at, op) in enumerate(batches_of(case)[step]):
        values = [
            f"CAST({texts[(0 if n % 10 == 5 else step + number) % len(texts)]} AS {kind})"
            for kind, texts in case.values.items()
        ]
        rows.append(
            f"({', '.join([*(k.format(n) for k in case.keys), case.sequence.format(at), repr(op), *values])})"
        )
    names = [*case.names, "a`t", "op", *(f"v.{n}`" for n in range(len(case.values)))]
    quoted = ", ".join("`" + name.replace("`", "``") + "`" for name in names)
    return spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS t({quoted})")


def in_texts(frame: DataFrame) -> list[dict[str, str | None]]:
    """Rows whose values are texts that can be compared, exact to the microsecond."""
    as_json = (
        "to_json(struct(*), map('timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\", "
        "'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\", 'ignoreNullFields', 'false')) AS t"
    )
    rows = [json.loads(row.t) for row in frame.selectExpr(as_json).collect()]
    return [{n: None if v is None else json.dumps(v, sort_keys=True) for n, v in row.items()} for row in rows]


def oracles_rows(frames: list[DataFrame], case: Case) -> list[dict[str, Any]]:
    """What the oracle computes: it orders events by the numbers that their sequences were made of."""
    numbers = [at for batch in batches_of(case) for _, at, _ in batch]
    texts = in_texts(reduce(DataFrame.unionAll, frames))
    sent = [{**row, "a`t": at} for row, at in zip(texts, numbers, strict=True)]
    sequences = {at: row["a`t"] for row, at in zip(texts, numbers, strict=True)}
    rows = (expected_scd2 if case.kind == "type 2" else expected_scd1)(
        sent,
        keys=case.names,
        sequence_by="a`t",
        apply_as_deletes=lambda row: row["op"] == '"D"',
        except_column_list=KINDS[case.kind].get("except_columns", ("op",)),
    )
    ordered = ("a`t", "__START_AT", "__END_AT")
    return [{n: sequences.get(v) if n in ordered else v for n, v in row.items()} for row in rows]


def must_not(*_args: Any, **_options: Any) -> None:
    """In the place of a merge."""
    raise AssertionError("merged")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("case_name", CASES)
def test_all_types(spark: SparkSession, tmp_path: Path, case_name: str):
    """Keys, sequences and values of each type, in order of times where clocks are put back, with names that have to be quoted:
    batches that the driver may decide need no MERGE, and after them and those of Spark's own way the rows are the oracle's.
    """
    case = CASES[case_name]
    with (
        session_settings(spark, {"spark.sql.session.timeZone": "America/New_York"}),
        pytest.MonkeyPatch.context() as patched,
    ):
        frames = [frame_of(spark, case, step) for step in range(len(case.limits))]
        options = {"keys": case.names, "sequence_by": SEQUENCE, **KINDS[case.kind]}
        changes = Changes(spark, tmp_path, flow(**options), frames[0].schema, case.properties)
        for step, (frame, limit) in enumerate(zip(frames, case.limits, strict=True)):
            patched.setattr(driver_rows, "LOCAL_ROWS", limit)
            with pytest.MonkeyPatch.context() as merging:
                # The first is merged: an empty table has no files.
                for module in (merge_latest, merge_history) if step == 1 and not case.merges else ():
                    merging.setattr(module, "_merge", must_not)
                changes.apply_frame(frame)
        found = in_texts(spark.read.format("delta").load(str(changes.target.path)))
        wanted = oracles_rows(frames, case)
    assert sorted(found, key=str) == sorted(wanted, key=str)
    assert len(found) == case.rows
