"""What failed is refreshed with its readers and nothing else; named flows run alone; settings of Lakeflow are validated as they are."""

from __future__ import annotations

import json

SOURCE = """
dp.create_streaming_table("bronze")

@dp.append_flow(target="bronze")
def web():
    return spark.readStream.schema("id INT").json(LANDING + "/web")

@dp.append_flow(target="bronze")
def app():
    return spark.readStream.schema("id INT").json(LANDING + "/app")

@dp.table
@dp.expect_or_fail("small", "id < 100")
def silver():
    return dp.read_stream("bronze")

@dp.materialized_view
def gold():
    return dp.read("silver").groupBy().agg(F.sum("id").alias("sum"))
"""


def test_failed_tables_and_single_flows(pipeline):
    """A failed table is mended and refreshed with its reader; then one of two flows takes its news and the other waits."""
    case = pipeline(SOURCE)
    case.land([{"id": 1}], "web")
    case.land([{"id": 200}], "app")
    for table, missing in [("silver", "bronze"), ("gold", "silver")]:
        code, report = case.run(f"--tables={table}")
        error = report["flows"][0]["error"]
        assert (code, error["condition"], error["where"].rpartition(":")[0]) == (
            1,
            "SOURCE_NOT_FOUND",
            str(case.folder / "transformations/main.py"),
        )
        assert f"The table '{missing}', which is read here, is not there" in error["message"]
        assert f"--tables={missing},..." in error["remedy"]
    code, report = case.run()
    assert code == 1
    assert {flow["flow"]: flow["state"] for flow in report["flows"] if flow["state"] != "COMPLETED"} == {
        "silver": "FAILED", "gold": "SKIPPED",
    }  # fmt: skip
    case.rewrite(SOURCE.replace("id < 100", "id < 1000"))
    case.land([{"id": 2}], "web")
    case.land([{"id": 3}], "app")
    code, report = case.run("--refresh-failed")
    assert (code, {flow["flow"] for flow in report["flows"]}) == (0, {"silver", "gold"})
    assert case.rows("gold", "sum", order="1") == [(201,)]
    states = {record["origin"]["flow_name"]: record["details"]["flow_progress"]["status"]
              for record in case.events(event_type="flow_progress", update_id=report["update_id"])}  # fmt: skip
    assert states == {
        "web": "EXCLUDED",
        "app": "EXCLUDED",
        "silver": "COMPLETED",
        "gold": "COMPLETED",
    }

    code, planned = case.run("--dry-run", "--flows=web")
    assert (code, [(f["flow"], f["files"]) for f in planned["flows"]]) == (0, [("web", 1)])
    code, report = case.run("--flows=web")
    assert (code, {flow["flow"] for flow in report["flows"]}) == (0, {"web"})
    assert case.rows("bronze", "id", order="1") == [(1,), (2,), (200,)]
    created = case.events(event_type="create_update")[-1]["details"]["create_update"]
    assert created["refresh_flow_selection"] == ["web"]

    settings = {"name": "case", "target": "shop", "configuration": {"landing": str(case.landing)}, "photon": True,
                "clusters": [{"autoscale": {"min_workers": 1, "max_workers": 2}}]}  # fmt: skip
    (case.folder / "pipeline.yml").unlink()
    case.write("pipeline.json", "// as it was exported\n" + json.dumps(settings))
    code, found = case.run("--validate")
    said = " ".join(one["message"] for one in found["findings"] if one["code"] == "HW603")
    assert (code, found["state"]) == (0, "VALID")
    assert "`photon` has no effect here" in said
    assert "`clusters.0.autoscale` is `spark` here: 1 to 2 executors" in said
