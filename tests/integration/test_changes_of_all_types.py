"""AUTO CDC on columns of all types: rows that the driver helps to write are those that Spark and MERGE alone write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.change_table import Changes, flow

from headwater.testing.auto_cdc import expected_scd1, expected_scd2
from headwater_spark.auto_cdc import merge_history, merge_latest
from headwater_spark.auto_cdc.on_driver import rows as driver_rows
from headwater_spark.auto_cdc.on_driver.rows import setting

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
KINDS: dict[str, dict[str, Any]] = {
    "type 1": {},
    "type 1, sequence left out": {"except_columns": ("op", "at")},
    "type 2": {"history": True, "except_columns": ("op", "at")},
}
# How a number becomes a key, and a sequence.
IDENTITIES = {
    "texts": ("CONCAT('é', {})", "LPAD({}, 3, '0')"),
    "dates": ("DATE'1500-01-01' + {}", "DATE'1500-01-01' + {}"),
    "times": (
        "TIMESTAMP'0001-01-02 00:00:00Z' + make_dt_interval({})",
        "TIMESTAMP'0001-01-02 00:00:00Z' + make_dt_interval({})",
    ),
    "decimals": ("CAST({} AS DECIMAL(38, 2))", "CAST({} AS DECIMAL(38, 2))"),
    "floats": ("CAST({} AS DOUBLE) / 3", "CAST({} AS FLOAT) / 3"),
    "booleans": ("{} > 2", "CAST({} AS SMALLINT)"),
    "bytes": ("CAST(CONCAT('k', {}) AS BINARY)", "CAST({} AS TINYINT)"),
    "local times": (
        "CAST(DATE'2026-01-01' + {} AS TIMESTAMP_NTZ)",
        "CAST(DATE'2026-01-01' + {} AS TIMESTAMP_NTZ)",
    ),
    "structs": ("named_struct('a', {})", "named_struct('a', 1, 'b', {})"),
}
# Key, sequence, operation: new, newer, late, gone and repeated ones.
BATCHES = (
    ((1, 10, "U"), (2, 10, "U"), (3, 10, "U"), (5, 10, "U")),
    ((1, 20, "U"), (2, 20, "D"), (4, 10, "U"), (5, 20, "U")),
    ((1, 15, "U"), (2, 5, "U"), (3, 20, "U"), (4, 20, "U"), (1, 30, "U"), (1, 30, "U"), (5, 30, "U")),
)


def events(
    spark: SparkSession, values: dict[str, tuple[str, ...]], batch: int, keys: Sequence[str], at: str
) -> DataFrame:
    """A batch of events with a column of each type; ``keys`` and ``at`` make a value of each key and of the sequence."""
    rows = []
    for number, (n, since, op) in enumerate(BATCHES[batch]):
        one = (texts[(0 if n == 5 else batch + number) % len(texts)] for texts in values.values())
        cells = [
            f"CAST({text} AS {kind}) AS v{i}" for i, (kind, text) in enumerate(zip(values, one, strict=True))
        ]
        key = ", ".join(f"{key.format(n)} AS {name}" for name, key in zip(key_names(keys), keys, strict=True))
        rows.append(f"SELECT {key}, {at.format(since)} AS at, '{op}' AS op, {', '.join(cells)}")
    return spark.sql(" UNION ALL ".join(rows))


def key_names(keys: Sequence[str]) -> tuple[str, ...]:
    """The names of so many key columns."""
    return ("key", *(f"key{n}" for n in range(1, len(keys))))


def written(
    spark: SparkSession,
    root: Path,
    values: dict[str, tuple[str, ...]],
    keys: Sequence[str],
    at: str,
    kind: str,
    *,
    merges: bool = True,
) -> list[str]:
    """The rows of a table after all batches. ``merges``: whether one may be written by MERGE after the first."""
    frames = [events(spark, values, number, keys, at) for number in range(len(BATCHES))]
    changes = Changes(spark, root, flow(keys=key_names(keys), **KINDS[kind]), frames[0].schema)
    changes.apply_frame(frames[0])  # by a merge: an empty table has no files
    with pytest.MonkeyPatch.context() as patched:
        for module in (merge_latest, merge_history) if not merges else ():
            patched.setattr(module, "_merge", must_not)
        for frame in frames[1:]:
            changes.apply_frame(frame)
    rows = spark.read.format("delta").load(str(changes.target.path))
    return sorted(row.t for row in rows.selectExpr("to_json(struct(*)) AS t").collect())


def must_not(*_args: Any, **_options: Any) -> None:
    """In the place of a merge."""
    raise AssertionError("merged")


@pytest.mark.parametrize("kind", KINDS)
def test_values(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str):
    """A column of each type that Arrow carries, in order of times, where clocks change: no MERGE, and the rows that Spark's own way gives."""
    keys, at = ["{}"], "TIMESTAMP'2026-11-01 05:30:00Z' + make_interval(0, 0, 0, 0, 0, {}, 0)"
    with setting(spark, "spark.sql.session.timeZone", "America/New_York"):
        result = written(spark, tmp_path / "driver", ON_THE_DRIVER, keys, at, kind, merges=False)
        monkeypatch.setattr(driver_rows, "LOCAL_ROWS", -1)
        wanted = written(spark, tmp_path / "spark", ON_THE_DRIVER, keys, at, kind)
    assert result == wanted
    assert len(result) == (11 if kind == "type 2" else 4)


def in_texts(row: str, names: list[str]) -> dict[str, Any]:
    """A row that Spark wrote as JSON, its values of many types as texts that can be compared."""
    values = json.loads(row)
    return {n: json.dumps(values[n]) if n.startswith("v") and n in values else values.get(n) for n in names}


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_other_types(spark: SparkSession, tmp_path: Path, kind: str):
    """Columns of types that Arrow does not carry as they are come through, too: the rows are the oracle's."""
    frames = [events(spark, IN_SPARK, number, ["{}"], "{}") for number in range(len(BATCHES))]
    names = frames[0].columns
    texts = [row.t for f in frames for row in f.selectExpr("to_json(struct(*)) AS t").collect()]
    oracle = expected_scd2 if kind == "type 2" else expected_scd1
    left_out = KINDS[kind].get("except_columns", ("op",))
    wanted = oracle(
        [in_texts(text, names) for text in texts],
        keys=["key"],
        sequence_by="at",
        apply_as_deletes=lambda row: row["op"] == "D",
        except_column_list=left_out,
    )
    result = [
        in_texts(row, list(wanted[0])) for row in written(spark, tmp_path, IN_SPARK, ["{}"], "{}", kind)
    ]
    assert sorted(result, key=str) == sorted(wanted, key=str)
    assert len(result) == (7 if kind == "type 2" else 4)


# Each type as the sequence, in tables of all kinds in turn; and all types together as the key of each kind.
CASES = {
    **{
        f"{name}, {kind}": ([key], at, kind)
        for (name, (key, at)), kind in zip(IDENTITIES.items(), cycle(KINDS), strict=False)
    },
    **{f"all keys, {kind}": ([key for key, _ in IDENTITIES.values()], "{}", kind) for kind in KINDS},
}


@pytest.mark.parametrize("case", CASES)
def test_keys_and_sequences(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str):
    """Keys and sequences of each type that can be one: the rows are those that Spark's own way gives."""
    keys, at, kind = CASES[case]
    values = {"TIMESTAMP": ON_THE_DRIVER["TIMESTAMP"]}
    on_driver = written(spark, tmp_path / "driver", values, keys, at, kind)
    monkeypatch.setattr(driver_rows, "LOCAL_ROWS", -1)
    assert on_driver == written(spark, tmp_path / "spark", values, keys, at, kind)
