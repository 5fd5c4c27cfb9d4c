"""An aggregation of a stream without a watermark holds, after each update, what a batch query would give."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("adaptive")

SOURCE = """
def landed():
    rows = spark.readStream.schema("id INT, team STRING, at TIMESTAMP")
    return rows.option("maxFilesPerTrigger", 1).json(LANDING)

@dp.table
@dp.expect("some", "n > 1")
def by_team():
    return landed().groupBy("team").agg(F.count("*").alias("n"), F.max("id").alias("newest"))

@dp.table
def by_hour():
    counted = landed().groupBy(F.window("at", "1 hour"), F.upper("team").alias("name")).count()
    return counted.select("window.start", "name", "count")

@dp.table
def large():
    return landed().groupBy("team").count().where("count > 1")

@dp.table
def whole():
    return landed().agg(F.count("*").alias("n"), F.sum("id").alias("ids"), F.avg("id").alias("mean"))

@dp.materialized_view
def teams():
    return dp.read("by_team").agg(F.count("*").alias("teams"), F.sum("n").alias("n"))
"""


def test_three_updates(pipeline):
    """With keys of the rows or made of them, with a HAVING, and without keys; over updates of several batches, of none, and of new keys."""
    case = pipeline(SOURCE)
    landed: list[dict[str, Any]] = []
    versions = []
    for teams in (["aab", "b"], [], ["ca"]):
        for letters in teams:
            rows = [
                {"id": len(landed) + n, "team": letter, "at": f"2026-01-01 0{(len(landed) + n) % 3}:30:00"}
                for n, letter in enumerate(letters)
            ]
            case.land(rows)
            landed += rows
        # Nothing has arrived for the others either.
        assert case.update(tables=() if teams else ("by_team", "teams")).state == "COMPLETED"
        counts = Counter(row["team"] for row in landed)
        newest = {row["team"]: row["id"] for row in landed}
        assert case.rows("by_team") == [(team, counts[team], newest[team]) for team in sorted(counts)]
        hours = Counter((int(row["at"][12]), row["team"].upper()) for row in landed)
        assert sorted(case.rows("by_hour", "date_part('hour', start), name, count")) == [
            (*key, hours[key]) for key in sorted(hours)
        ]
        assert case.rows("large") == [(team, n) for team, n in sorted(counts.items()) if n > 1]
        total = sum(row["id"] for row in landed)
        assert case.rows("whole") == [(len(landed), total, total / len(landed))]
        assert case.rows("teams") == [(len(counts), len(landed))]
        versions.append(case.version("by_team"))
    assert versions[0] == versions[1] < versions[2]
