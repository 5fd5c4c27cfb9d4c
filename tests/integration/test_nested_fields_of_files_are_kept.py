"""A new field inside a struct, an array or a map of Parquet, ORC and Avro files is a column, rescued, or an error: never lost."""

from __future__ import annotations

import json

from pyspark.sql import functions as F

MODES = {"add": "addNewColumns", "rescue": "rescue", "fail": "failOnNewColumns"}
FORMATS = ("parquet", "orc", "avro")
OLD = [
    "1 as id",
    "named_struct('a', 1) as s",
    "array(named_struct('a', 1)) as l",
    "map('k', named_struct('a', 1)) as m",
]
NEW = [
    "2 as id",
    "named_struct('a', 2, 'b', named_struct('c', 3)) as s",
    "array(named_struct('a', 2, 'b', null), named_struct('a', 3, 'b', 4)) as l",
    "map('j', named_struct('a', 5, 'b', 6)) as m",
]
RESCUED = {"s": {"b": {"c": 3}}, "l": [None, {"b": 4}], "m": {"j": {"b": 6}}}


def source() -> str:
    """A table for each format and mode."""
    tables = [
        f"""
@dp.table(name="{kind}_{word}")
def {kind}_{word}():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "{kind}")
        .option("cloudFiles.schemaEvolutionMode", "{mode}").load(LANDING + "/{kind}"))
"""
        for kind in FORMATS
        for word, mode in MODES.items()
    ]
    return "".join(tables)


def test_new_fields_inside(pipeline, spark):
    """All nine tables in two updates: those that evolve have the fields, those that rescue their values, the others fail."""
    case = pipeline(source())

    def land(name: str, columns: list[str]) -> None:
        for kind in FORMATS:
            folder = case.root / f"made-{kind}-{name}"
            spark.range(1).selectExpr(*columns).coalesce(1).write.format(kind).save(str(folder))
            (case.landing / kind).mkdir(exist_ok=True)
            next(folder.glob(f"*.{kind}")).rename(case.landing / kind / f"{name}.{kind}")

    land("a", OLD)
    assert case.update().state == "COMPLETED"
    land("b", NEW)
    report = case.update()

    def rows(table: str) -> list[tuple]:
        # delta-rs can't read files whose maps lack a field that the table has.
        names = ("s", "l", "m")
        texts = [F.to_json(F.col(name), {"ignoreNullFields": "false"}).alias(name) for name in names]
        frame = spark.read.format("delta").load(str(case.table(table))).select("id", *texts, "_rescued_data")
        return [
            (row["id"], *(json.loads(row[name]) for name in names), row["_rescued_data"])
            for row in frame.orderBy("id").collect()
        ]

    for kind in FORMATS:
        assert rows(f"{kind}_add") == [
            (1, {"a": 1, "b": None}, [{"a": 1, "b": None}], {"k": {"a": 1, "b": None}}, None),
            (
                2,
                {"a": 2, "b": {"c": 3}},
                [{"a": 2, "b": None}, {"a": 3, "b": 4}],
                {"j": {"a": 5, "b": 6}},
                None,
            ),
        ], kind
        (first, second) = rows(f"{kind}_rescue")
        assert first == (1, {"a": 1}, [{"a": 1}], {"k": {"a": 1}}, None), kind
        assert second[:-1] == (2, {"a": 2}, [{"a": 2}, {"a": 3}], {"j": {"a": 5}}), kind
        rescued = json.loads(second[-1])
        assert rescued.pop("_file_path").endswith(f"b.{kind}")
        assert rescued == RESCUED, kind
        failed = report[f"{kind}_fail"]
        assert (failed.status.value, failed.error.condition) == ("FAILED", "UNKNOWN_FIELDS"), kind
        assert all(name in failed.error.what for name in ("s.b", "l.element.b", "m.value.b")), kind
        assert case.rows(f"{kind}_fail", "id") == [(1,)]
