"""A table's column holds every value that a changed query gives, or the stream does not start."""

from __future__ import annotations

# Each table, the type that its column is made with, and the type that its query gives later. Of the last three Delta's own
# streaming sink, MERGE or a staged append would have to cut values; of which types is decided without Spark (unit tests).
TAKEN = {
    "narrower": ("bigint", "int"), "text": ("string", "int"), "widened": ("int", "bigint"), "day": ("timestamp", "date"),
    "spelled": ("int", "int"),
}  # fmt: skip
REFUSED = {"cut": ("int", "double"), "newest": ("int", "double"), "judged": ("int", "double")}
ARGUMENTS = {
    "widened": '(table_properties={"delta.enableTypeWidening": "true"})',
    "newest": '(replace_using=["id"], sequence_by="id")',
}
RULES = {
    **dict.fromkeys(TAKEN, '@dp.expect_or_drop("few", "id < 9")\n'),
    "judged": '@dp.expect_or_quarantine("known", "id > 0")\n',
}
VALUES = {"date": "2026-01-02", "timestamp": "2026-01-02 03:04:05"}


def source(later: bool) -> str:
    """The pipeline, before and after its queries were changed."""
    tables = []
    for name, types in {**TAKEN, **REFUSED}.items():
        kind = types[later]
        value = VALUES.get(kind, "3.75" if kind == "double" else "3")
        column = "V" if later and name == "spelled" else "v"
        tables.append(
            f"@dp.table{ARGUMENTS.get(name, '')}\n{RULES.get(name, '')}def {name}():\n"
            f'    rows = spark.readStream.schema("id INT").json(LANDING)\n'
            f'    return rows.select("id", F.lit("{value}").cast("{kind}").alias("{column}"))\n'
        )
    return "\n".join(tables)


def test_a_changed_type(pipeline):
    """What the table's type holds is written, and counted as ever; what it would cut is refused before the batch, and is whole
    after a full refresh.
    """
    case = pipeline(source(later=False))
    case.land([{"id": 1}])
    assert case.update().state == "COMPLETED"
    case.land([{"id": 2}, {"id": 9}])
    case.rewrite(source(later=True))
    refused = case.update()
    assert {name: (refused[name].input_rows, refused[name].dropped_rows) for name in TAKEN} == dict.fromkeys(
        TAKEN, (2, 1)
    )
    for tried in (refused, case.update(tables=tuple(REFUSED))):  # a second try is refused as the first
        conditions = {o.flow: o.error.condition for o in tried.result.outcomes if o.error is not None}
        assert conditions == dict.fromkeys(REFUSED, "COLUMN_TYPE_CHANGED")
    for name in set(TAKEN) - {"widened"}:  # delta-rs reads no such table
        assert len(case.rows(name)) == 2, name
    for name in REFUSED:
        assert [row[0] for row in case.rows(name)] == [1], name
    assert case.update(full_refresh=tuple(REFUSED)).state == "COMPLETED"
    for name in REFUSED:
        assert case.rows(name) == [(1, 3.75), (2, 3.75), (9, 3.75)], name
