"""However the data is cut into files, batches and updates, tables end up as one query over all of it would make them."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.seeds import SEED, SOAK

pytestmark = pytest.mark.usefixtures("adaptive")

SOURCE = """
@dp.table(partition_cols=["team"])
@dp.expect_or_drop("positive", "points > 0")
def bronze():
    return spark.readStream.schema("id INT, team STRING, points INT").option("maxFilesPerTrigger", 2).json(LANDING)

@dp.table
def doubled():
    twice = F.explode(F.array(F.col("points"), F.col("points") * 2)).alias("points")
    return spark.readStream.option("maxFilesPerTrigger", 1).table("bronze").select("id", "team", twice)

@dp.view
def teams():
    return dp.read("doubled").groupBy("team").agg(F.count("*").alias("n"), F.sum("points").alias("points"))

@dp.materialized_view
def standings():
    return spark.sql("select t.team, t.n, t.points, t.points > (select avg(points) from teams) as above from teams t")

@dp.table
def running():
    return dp.read_stream("bronze").groupBy("team").count()
"""


@pytest.mark.timeout(240)
def test_random_cuts(pipeline):
    """Seeded random files over several updates: streaming tables, views over them and running aggregates are exact."""
    seed = SEED
    print(f"HEADWATER_SEED={seed}")
    chance = random.Random(seed)
    case = pipeline(SOURCE)
    landed: list[tuple[int, str, int]] = []
    for _ in range(3 if SOAK else 2):
        for _ in range(chance.randint(0, 4)):
            rows = [
                (len(landed) + n, chance.choice("abc"), chance.randint(-2, 9))
                for n in range(chance.randint(1, 8))
            ]
            case.land([{"id": i, "team": team, "points": points} for i, team, points in rows])
            landed += rows
        assert case.update().state == "COMPLETED"

    passed = [row for row in landed if row[2] > 0]
    doubled = sorted((i, team, points * k) for i, team, points in passed for k in (1, 2))
    assert case.rows("bronze") == passed
    assert sorted(case.rows("doubled")) == doubled
    totals = {team: sum(p for _, t, p in doubled if t == team) for team in {t for _, t, _ in doubled}}
    counts = Counter(team for _, team, _ in doubled)
    mean = sum(totals.values()) / len(totals) if totals else 0
    assert case.rows("standings") == [(t, counts[t], totals[t], totals[t] > mean) for t in sorted(totals)]
    assert case.rows("running") == sorted(Counter(team for _, team, _ in passed).items())
