"""AUTO CDC in whole pipelines: the worked example of Lakeflow, in both types, over several updates and a full refresh."""

from __future__ import annotations

import pytest

from headwater.checkpoints.conditions import ChangeMemoryLost
from headwater.checkpoints.layout import change_memory
from headwater.definitions.change_conditions import InvalidChangeFlow, NullKey, NullSequence
from headwater.storage.walking import remove_tree

EVENTS = [
    (124, "Raul", "Oaxaca", "INSERT", 1), (123, "Isabel", "Monterrey", "INSERT", 1),
    (125, "Mercedes", "Tijuana", "INSERT", 2), (126, "Lily", "Cancun", "INSERT", 2),
    (123, None, None, "DELETE", 6), (125, "Mercedes", "Guadalajara", "UPDATE", 6),
    (125, "Mercedes", "Mexicali", "UPDATE", 5), (123, "Isabel", "Chihuahua", "UPDATE", 5),
]  # fmt: skip
TRUNCATE = (None, None, None, "TRUNCATE", 3)

SOURCE = """
@dp.temporary_view
def users():
    return spark.readStream.schema("userId INT, name STRING, city STRING, operation STRING, sequenceNum INT").json(LANDING)

def merged(target, properties={}, **options):
    dp.create_streaming_table(target, table_properties=properties)
    dp.create_auto_cdc_flow(
        target=target, source="users", keys=["userId"], sequence_by=F.col("sequenceNum"),
        apply_as_deletes=F.expr("operation = 'DELETE'"), except_column_list=["operation", "sequenceNum"], **options)

merged("latest", apply_as_truncates="operation = 'TRUNCATE'")
merged("history", stored_as_scd_type="2")
merged("moves", {"pipelines.cdc.fastPath": "false"}, stored_as_scd_type=2, track_history_except_column_list=["city"])

@dp.table
def changes():
    feed = spark.readStream.option("readChangeFeed", "true").table("latest")
    return feed.select("userId", "city", F.col("_change_type").alias("change"))
"""
HISTORY = [
    (123, "Isabel", "Monterrey", 1, 5), (123, "Isabel", "Chihuahua", 5, 6), (124, "Raul", "Oaxaca", 1, None),
    (125, "Mercedes", "Tijuana", 2, 5), (125, "Mercedes", "Mexicali", 5, 6), (125, "Mercedes", "Guadalajara", 6, None),
    (126, "Lily", "Cancun", 2, None),
]  # fmt: skip
MOVES = [
    (123, "Isabel", "Chihuahua", 1, 6), (124, "Raul", "Oaxaca", 1, None),
    (125, "Mercedes", "Guadalajara", 2, None), (126, "Lily", "Cancun", 2, None),
]  # fmt: skip


def landed(case, events):
    names = ("userId", "name", "city", "operation", "sequenceNum")
    case.land([dict(zip(names, event, strict=True)) for event in events])


@pytest.mark.timeout(240)
def test_the_worked_example(pipeline):
    """Both types come to the documented rows, late events and a truncate included; readers can follow the changes; an event that
    says nothing fails its flow by name.
    """
    case = pipeline(SOURCE)
    landed(case, EVENTS[4:])
    assert case.update().state == "COMPLETED"
    landed(case, EVENTS[:4])
    report = case.update()
    assert report.state == "COMPLETED", report.error
    order = 'userId, "__START_AT"'
    assert case.rows("latest", order="userId") == [
        (124, "Raul", "Oaxaca"), (125, "Mercedes", "Guadalajara"), (126, "Lily", "Cancun"),
    ]  # fmt: skip
    assert case.rows("history", order=order) == HISTORY
    assert case.rows("moves", order=order) == MOVES
    # Which engine wrote the last batch of each, and why it was not the fast path.
    records = sorted(case.events(event_type="flow_progress", level="METRICS"), key=lambda r: r["timestamp"])
    progress = {r["origin"]["flow_name"]: r["details"]["flow_progress"] for r in records}
    assert {
        name: (progress[name]["engine"], progress[name].get("engine_reason"))
        for name in ("latest", "history", "moves")
    } == {
        "latest": ("merge", "the flow has truncates"),
        "history": ("driver_rewrite", None),
        "moves": ("merge", "closed by pipelines.cdc.fastPath"),
    }
    assert progress["history"]["metrics"]["num_tied_events"] == 0
    assert case.update(full_refresh=("history",)).state == "COMPLETED"
    assert case.rows("history", order=order) == HISTORY
    # To the other two the truncate is an event without a key.
    landed(case, [TRUNCATE])
    report = case.update()
    assert report.statuses | {"latest": "COMPLETED", "changes": "COMPLETED"} == report.statuses
    assert case.rows("latest", order="userId") == [(125, "Mercedes", "Guadalajara")]
    assert (126, "Cancun", "delete") in case.rows("changes", order="userId, change")
    assert {flow: type(report[flow].error) for flow in ("history", "moves")} == {
        "history": NullKey,
        "moves": NullKey,
    }
    # Nothing of a batch is written that has an event without a sequence, or without a key.
    landed(case, [(127, "Ann", "Leon", "INSERT", 7), (128, "Bo", "Leon", "INSERT", None)])
    assert isinstance(case.update(tables=("latest",)).error, NullSequence)
    assert case.rows("latest", order="userId") == [(125, "Mercedes", "Guadalajara")]
    assert (case.rows("history", order=order), case.rows("moves", order=order)) == (HISTORY, MOVES)
    # Without its tombstones an older event that comes late would win.
    remove_tree(change_memory(case.project().state_folder, "latest"))
    assert isinstance(case.update(tables=("latest",)).error, ChangeMemoryLost)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ('keys=["user"], sequence_by="at"', "which the source does not have"),
        ('keys=["userId"], sequence_by="at"', "sequence_by does not fit"),
        ('keys=["userId"], sequence_by=F.max("sequenceNum")', "sequence_by does not fit"),
        ('keys=["userId"], sequence_by="sequenceNum", apply_as_deletes="count(*) > 1"', "apply_as_deletes does not fit"),
        ('keys=["userId"], sequence_by="sequenceNum", column_list=["userId"], except_column_list=["city"]', "exclude each other"),
        ('keys=["userId"], sequence_by="sequenceNum", except_column_list=["userId"]', "must keep its keys"),
        ('keys=["userId"], sequence_by="sequenceNum", stored_as_scd_type=2, apply_as_truncates="true"', "needs type 1"),
        ('keys=["userId"], sequence_by="sequenceNum", stored_as_scd_type=3', "not a type"),
        ('keys=["userId"], sequence_by="sequenceNum", track_history_column_list=["city"]', "only type 2"),
        ('keys=[], sequence_by="sequenceNum"', "keys are needed"),
        ('keys=["userId"], sequence_by="sequenceNum", stored_as_scd_type=2, except_column_list=["city"], track_history_column_list=["city"]',
         "track_history_column_list names 'city', which the target does not have"),
        ('keys=["userId"], sequence_by="sequenceNum", stored_as_scd_type=2, column_list=["userId", "name"], track_history_except_column_list=["userId", "city"]',
         "track_history_except_column_list names 'city', which the target does not have"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(pipeline, options: str, what: str):
    """Arguments that exclude each other or name no column are refused with the call's line, before anything is written."""
    source = SOURCE.partition("def merged(")[0]
    case = pipeline(
        f'{source}\ndp.create_streaming_table("t")\ndp.apply_changes(target="t", source="users", {options})\n'
    )
    with pytest.raises(InvalidChangeFlow, match=what) as caught:
        case.update()
    assert caught.value.where == case.line_of("dp.apply_changes")
    assert case.nothing_written()
