"""A refresh of a materialized view replaces its rows in one step: readers see those before or those after."""

from __future__ import annotations

import threading

from tests.pipeline_case import read_rows

SOURCE = """
@dp.materialized_view
def totals():
    return spark.read.schema("id INT").json(LANDING).groupBy((F.col("id") % 10).alias("k")).count()
"""


def test_reading_all_the_while(pipeline):
    """A reader beside four refreshes always sees ten whole rows, and sees each number of rows grow only."""
    case = pipeline(SOURCE)
    case.land([{"id": n} for n in range(10)])
    case.update()
    seen: list[list[tuple[int, int]]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(read_rows(case.table("totals")))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for round_ in range(4):
            case.land([{"id": n} for n in range(10)])
            report = case.update(full_refresh=("totals",)) if round_ == 3 else case.update()
            assert report.state == "COMPLETED"
    finally:
        done.set()
        reader.join(30)
    assert len(seen) > 10
    # Each answer has all keys with one and the same count: no mixture of two refreshes, and never none.
    assert all(
        [key for key, _ in rows] == list(range(10)) and len({n for _, n in rows}) == 1 for rows in seen
    )
    counts = [rows[0][1] for rows in seen]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert [count for _, count in case.rows("totals")] == [5] * 10
