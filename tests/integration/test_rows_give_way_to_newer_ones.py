"""replace_using and sequence_by: late rows merge by key, whatever order and batches they come in."""

from __future__ import annotations

import itertools

import pytest

SOURCE = """
@dp.table(replace_using=["region"], sequence_by="seq")
def by_region():
    return spark.readStream.schema("region INT, device STRING, seq INT").option("maxFilesPerTrigger", 1).json(LANDING)

dp.create_streaming_table("by_device")

@dp.replace_flow(target="by_device", replace_using=["region", "device"], sequence_by=F.col("seq"))
def devices():
    return spark.readStream.schema("region INT, device STRING, seq INT").json(LANDING)
"""


def row(region, device, seq):
    return {"region": region, "device": device, "seq": seq}


def expected(rows, *keys):
    """For each key all rows with the highest sequence; NULL is the lowest."""

    def key(r):
        return tuple(r[k] for k in keys)

    def order(r):
        return -1 if r["seq"] is None else r["seq"]

    best = {key(r): max(order(o) for o in rows if key(o) == key(r)) for r in rows}
    newest = [tuple(r.values()) for r in rows if order(r) == best[key(r)]]
    return sorted(newest, key=lambda r: tuple((v is not None, v) for v in r))


def test_partial_snapshots(pipeline):
    """A newer snapshot of a region takes the place of the older one as a whole; other regions stay."""
    case = pipeline(SOURCE)
    case.land([row(1, "iOS", 1), row(1, "Android", 1), row(2, "iOS", 1)])
    case.update()
    case.land([row(1, "desktop", 2), row(3, "iOS", 1), row(3, "desktop", 2)])
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.rows("by_region") == [(1, "desktop", 2), (2, "iOS", 1), (3, "desktop", 2)]
    assert report["by_region"].output_rows == 2
    case.land([row(1, "late", 1), row(1, "beside", 2)])
    case.update()
    assert case.rows("by_region") == [(1, "beside", 2), (1, "desktop", 2), (2, "iOS", 1), (3, "desktop", 2)]
    modes = {flow.name: (flow.output_mode, flow.merge_keys) for flow in case.manifest().flows}
    assert modes == {"by_region": ("replace", ("region",)), "devices": ("replace", ("region", "device"))}


ROWS = [row(1, "a", 3), row(1, "b", 1), row(None, "a", 2), row(1, None, 3), row(None, "a", None), row(2, "c", None), row(2, "c", 0)]  # fmt: skip
ORDERS = list(itertools.islice(itertools.permutations(range(len(ROWS))), 0, None, 1013))[:5]


@pytest.mark.parametrize("order", ORDERS)
def test_any_order(pipeline, order):
    """However the rows are ordered and cut into batches, the table has the rows of the highest sequence of each key."""
    case = pipeline(SOURCE)
    rows = [ROWS[i] for i in order]
    cut = 1 + order[0] % 4
    for part in (rows[:cut], rows[cut : cut + 2], rows[cut + 2 :]):
        if part:
            case.land(part)
    assert case.update().state == "COMPLETED"
    by_null = '"region" nulls first, device nulls first, seq'
    assert case.rows("by_region", order=by_null) == expected(rows, "region")
    assert case.rows("by_device", order=by_null) == expected(rows, "region", "device")
