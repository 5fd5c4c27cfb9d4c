"""Values given for a run reach the sources, change what queries give, refill no table, and secrets are kept nowhere."""

from __future__ import annotations

import json

from headwater.graph.manifest import FILE_NAME, read_manifest

KEY = "s3cr3t-of-the-shop"
SPEC = """
parameters:
  day: {type: date, required: true}
  limit: {type: integer, default: 2}
  shop_key: {secret: true, default: "env:SHOP_KEY_OF_TEST"}
"""
SOURCE = f"""
assert spark.conf.get("shop_key") == {KEY[::-1]!r}[::-1]
assert dbutils.widgets.get("limit") == spark.conf.get("limit")

@dp.table
def bronze():
    return spark.readStream.schema("id INT").json(LANDING)

@dp.materialized_view
def gold():
    return spark.sql("SELECT id, DATE'${{day}}' AS day FROM bronze WHERE id < ${{limit}}")
"""


def test_a_run_with_parameters(pipeline, monkeypatch):
    """Two updates with other values: the view is computed again, the stream goes on; a wrong value writes nothing."""
    monkeypatch.setenv("SHOP_KEY_OF_TEST", KEY)
    case = pipeline(SOURCE, spec=SPEC)
    case.land([{"id": n} for n in range(5)])

    code, report = case.run()
    assert (code, report["error"]["condition"]) == (2, "INVALID_PARAMETER")
    code, report = case.run("--param=day=tomorrow")
    assert (code, report["error"]["condition"]) == (2, "INVALID_PARAMETER")
    assert not case.storage.exists()
    assert not case.warehouse.exists()

    assert case.run("--param=day=2026-01-31")[0] == 0
    assert case.rows("gold", "id, CAST(day AS STRING)") == [(0, "2026-01-31"), (1, "2026-01-31")]
    assert case.run("--param=day=2026-02-01", "--param=limit=3")[0] == 0
    assert case.rows("gold", "id, CAST(day AS STRING)") == [(n, "2026-02-01") for n in range(3)]
    assert [row[0] for row in case.rows("bronze", order="1")] == list(range(5))
    assert case.version("bronze") == 0, "one batch: no value refills a stream's table"

    created = [
        record["details"]["create_update"]["parameters"] for record in case.events(event_type="create_update")
    ]
    assert created == [
        {"day": "2026-01-31", "limit": "2", "shop_key": "[redacted]"},
        {"day": "2026-02-01", "limit": "3", "shop_key": "[redacted]"},
    ]
    leaks = [path for path in case.root.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert leaks == []

    assert case.run("--validate", "--param=day=2026-02-02")[0] == 0
    committed = read_manifest(case.folder / FILE_NAME)
    assert committed is not None
    assert committed.source_hash == case.project().source_hash(), "the DAG fits, whatever the values were"
    assert "parameters_hash" not in json.loads((case.folder / FILE_NAME).read_text())
