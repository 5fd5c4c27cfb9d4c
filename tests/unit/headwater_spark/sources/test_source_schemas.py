"""A change of a source's columns that reaches the result is reported with the ways out."""

from __future__ import annotations

import pytest

from headwater.definitions.flow import Flow
from headwater.errors import SourceSchemaChanged
from headwater_spark.sources.source_schemas import OUTPUT, SchemaChange, StreamSchemas, check_source_schemas

BEFORE = {"id": "int", "name": "string"}
FLOW = Flow("silver", "silver", lambda: None)


@pytest.mark.parametrize(
    ("now", "change", "way"),
    [
        ({**BEFORE, "size": "int"}, "added size", "mergeSchema"),
        ({"id": "int"}, "removed name", 'withColumn("name", F.lit(None))'),
        ({"id": "int", "title": "string"}, "renamed name to title", 'withColumnRenamed("title", "name")'),
        ({"id": "bigint", "name": "string"}, "changed id from int to bigint", 'try_cast("int")'),
    ],
)
def test_a_change_is_told(now: dict[str, str], change: str, way: str):
    """Each kind of change is named, with the way to keep the table as it is, and the full refresh."""
    assert str(SchemaChange.between(BEFORE, now)) == change
    with pytest.raises(SourceSchemaChanged, match=change) as caught:
        check_source_schemas(FLOW, {OUTPUT: BEFORE, "/t": BEFORE}, StreamSchemas({OUTPUT: now, "/t": now}))
    assert way in caught.value.remedy
    assert "--full-refresh silver" in caught.value.remedy


def test_what_is_no_matter():
    """No first run, no change that stays out of the result, and no addition that was asked for is refused."""
    more = {**BEFORE, "size": "int"}
    check_source_schemas(FLOW, {}, StreamSchemas({OUTPUT: more, "/t": more}))
    check_source_schemas(FLOW, {OUTPUT: BEFORE, "/t": BEFORE}, StreamSchemas({OUTPUT: BEFORE, "/t": more}))
    check_source_schemas(
        FLOW,
        {OUTPUT: BEFORE, "/t": BEFORE},
        StreamSchemas({OUTPUT: more, "/t": more}, evolving=frozenset({"/t"})),
    )
    check_source_schemas(FLOW, {OUTPUT: BEFORE, "/t": BEFORE}, StreamSchemas({OUTPUT: more, "/t": BEFORE}))


def test_only_additions_can_be_asked_for():
    """mergeSchema takes new columns, and no loss."""
    now = {"id": "int"}
    with pytest.raises(SourceSchemaChanged, match="removed name"):
        check_source_schemas(
            FLOW,
            {OUTPUT: BEFORE, "/t": BEFORE},
            StreamSchemas({OUTPUT: now, "/t": now}, evolving=frozenset({"/t"})),
        )


def test_columns_that_stay():
    """Where a source's data are rescued its columns stay what they were at first, and no change is refused."""
    now = {"id": "int"}
    schemas = StreamSchemas({OUTPUT: now, "/t": now}, pinned=frozenset({"/t"}))
    check_source_schemas(FLOW, {OUTPUT: BEFORE, "/t": BEFORE}, schemas)
    assert schemas.to_remember({OUTPUT: BEFORE, "/t": BEFORE}) == {OUTPUT: now, "/t": BEFORE}
    assert schemas.to_remember({}) == {OUTPUT: now, "/t": now}
