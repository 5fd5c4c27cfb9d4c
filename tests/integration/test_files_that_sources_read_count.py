"""A pipeline whose tables come from files and tables that its sources read: what changes there is a change of the definition."""

from __future__ import annotations

import json

from headwater.updates.news import has_news

SOURCE = """
import json
from pathlib import Path

SHARED = json.loads(Path(LANDING, "shared.json").read_text())

def declare(name, factor):
    @dp.materialized_view(name=name)
    def view():
        return dp.read("numbers").select((F.col("id") * factor * SHARED["factor"]).alias("value"))

@dp.materialized_view
def numbers():
    return spark.range(1, 3)

for path in sorted((Path(__file__).parents[1] / "conf").glob("*.json")):
    declare(path.stem, json.loads(path.read_text())["factor"])
"""
QUERY = "FACTOR = [row.id for row in spark.read.format('delta').load(LANDING + '/factors').collect()][0]\n"


def test_settings_in_files(pipeline):
    """A changed, new and removed file is news before Spark starts and changes what depends on it; without one nothing is done."""
    case = pipeline(SOURCE, files={"conf/a.json": '{"factor": 1}', "conf/b.json": '{"factor": 2}'})
    shared = case.landing / "shared.json"
    shared.write_text('{"factor": 1}')

    def values(*names: str) -> list[list[int]]:
        assert case.update().state == "COMPLETED"
        assert not has_news(case.project()).moved, has_news(case.project()).reasons
        return [[value for (value,) in case.rows(name)] for name in names]

    assert values("a", "b") == [[1, 2], [2, 4]]
    versions = [case.version(name) for name in ("a", "b")]
    for name, text, first in (("conf/b.json", 3, "conf/b.json"), ("conf/c.json", 4, "conf")):
        case.write(name, json.dumps({"factor": text}))
        (reason,) = has_news(case.project()).reasons
        assert reason == f"{first}, which the sources read while they are loaded, has changed"
        assert values("b") == [[3, 6]]
    assert values("c") == [[4, 8]]
    assert (case.version("a"), case.version("b") > versions[1]) == (versions[0], True)
    shared.write_text('{"factor": 10}')
    assert str(shared) in has_news(case.project()).reasons[0]
    assert values("a", "b", "c") == [[10, 20], [30, 60], [40, 80]]


def test_settings_in_tables(pipeline, spark):
    """What a source asks of Spark can't be compared before it runs: each update starts, and views follow."""
    case = pipeline(
        QUERY
        + "@dp.materialized_view\ndef v():\n    return spark.range(1, 2).select((F.col('id') * FACTOR).alias('value'))\n"
    )
    for factor in (2, 3):
        spark.range(factor, factor + 1).write.format("delta").mode("overwrite").save(
            f"{case.landing}/factors"
        )
        assert case.update().state == "COMPLETED"
        assert case.rows("v") == [(factor,)]
        assert has_news(case.project()).reasons == ("the sources query tables while they are loaded",)
