"""replace_using and sequence_by: late rows merge by key, whatever order and batches they come in."""

from __future__ import annotations

import itertools

import pytest

# All cases share the tables: the number of a case is a part of each key.
SOURCE = """
SCHEMA = "number INT, region INT, device STRING, seq INT"

@dp.table(replace_using=["number", "region"], sequence_by="seq")
def by_region():
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(LANDING)

dp.create_streaming_table("by_device")

@dp.replace_flow(target="by_device", replace_using=["number", "region", "device"], sequence_by=F.col("seq"))
def devices():
    return spark.readStream.schema(SCHEMA).json(LANDING)
"""
COLUMNS = ("number", "region", "device", "seq")
# Rows of a case, written as region, device and sequence, as they come in three batches.
SNAPSHOTS = (
    [(1, "iOS", 1), (1, "Android", 1), (2, "iOS", 1)],
    [(1, "desktop", 2), (3, "iOS", 1), (3, "desktop", 2)],
    [(1, "late", 1), (1, "beside", 2)],
)
# A newer snapshot of a region takes the place of the older one as a whole; other regions stay.
AFTER_EACH = (
    [(1, "Android", 1), (1, "iOS", 1), (2, "iOS", 1)],
    [(1, "desktop", 2), (2, "iOS", 1), (3, "desktop", 2)],
    [(1, "beside", 2), (1, "desktop", 2), (2, "iOS", 1), (3, "desktop", 2)],
)
ROWS = [
    (1, "a", 3),
    (1, "b", 1),
    (None, "a", 2),
    (1, None, 3),
    (None, "a", None),
    (2, "c", None),
    (2, "c", 0),
]
ORDERS = list(itertools.islice(itertools.permutations(ROWS), 0, None, 101))[:48]
CASES = [
    SNAPSHOTS,
    *((o[:cut], o[cut : cut + 2], o[cut + 2 :]) for n, o in enumerate(ORDERS) for cut in [1 + n % 4]),
]


def sequence(row):
    """What a row is compared by; NULL is the lowest."""
    return -1 if row[2] is None else row[2]


def newest(rows, keys):
    """For each key all rows with the highest sequence. ``keys``: so many columns are the key."""
    best = {}
    for row in rows:
        best[row[:keys]] = max(sequence(row), best.get(row[:keys], -1))
    return sort(row for row in rows if sequence(row) == best[row[:keys]])


def written(batch, before, keys):
    """How many rows a batch writes: its newest ones, where the rows before it have no newer one."""
    return sum((newest([*before, *batch], keys)).count(row) > 0 for row in newest(batch, keys))


def sort(rows):
    return sorted(rows, key=lambda row: tuple((value is not None, value) for value in row))


def rows_of_cases(pipeline_case, table):
    """A table's rows, by case."""
    rows = [[] for _ in CASES]
    for number, *row in pipeline_case.rows(table):
        rows[number].append(tuple(row))
    return [sort(found) for found in rows]


@pytest.mark.timeout(180)
def test_any_order(pipeline):
    """However rows are ordered and cut into batches and updates, each case has the rows of the highest sequence of each key."""
    case = pipeline(SOURCE)
    arrived = [[] for _ in CASES]
    # The last two files are two batches of one table, and one of the other.
    for steps in ((0,), (1, 2)):
        before, counts = [list(rows) for rows in arrived], {"by_region": 0, "devices": 0}
        for step in steps:
            case.land(
                [
                    dict(zip(COLUMNS, (number, *row), strict=True))
                    for number, parts in enumerate(CASES)
                    for row in parts[step]
                ]
            )
            counts["by_region"] += sum(
                written(parts[step], rows, 1) for parts, rows in zip(CASES, arrived, strict=True)
            )
            for rows, parts in zip(arrived, CASES, strict=True):
                rows.extend(parts[step])
        batches = [rows[len(old) :] for rows, old in zip(arrived, before, strict=True)]
        counts["devices"] = sum(written(batch, old, 2) for batch, old in zip(batches, before, strict=True))
        report = case.update()
        assert report.state == "COMPLETED", report.error
        assert {flow: report[flow].output_rows for flow in counts} == counts
        assert [report[flow].batches for flow in counts] == [len(steps), 1]
        found = rows_of_cases(case, "by_region")
        assert found[0] == AFTER_EACH[steps[-1]]
        wrong = {}
        for table, keys in (("by_region", 1), ("by_device", 2)):
            for parts, rows, had in zip(CASES, arrived, rows_of_cases(case, table), strict=True):
                if had != newest(rows, keys):
                    wrong[f"{table}, {parts}"] = had
        assert wrong == {}
    assert newest([*SNAPSHOTS[0], *SNAPSHOTS[1]], 1) == AFTER_EACH[1]
    modes = {flow.name: (flow.output_mode, flow.merge_keys) for flow in case.manifest().flows}
    assert modes == {
        "by_region": ("replace", ("number", "region")),
        "devices": ("replace", ("number", "region", "device")),
    }
