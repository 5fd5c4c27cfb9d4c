"""Tables that got another name, or another pipeline, take in exactly what is new; a batch in flight is not written twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.pipeline_case import PipelineCase
from tests.prepared_pipeline import conditions_of

from headwater.checkpoints.layout import FlowState
from headwater.commands.command_line import main
from headwater.delta_log.table_history import table_id
from headwater.graph.pipeline_project import open_project
from headwater.graph.update_plan import Selection
from headwater_spark.execution.update import UpdateRequest, run_update

SOURCE = """
@dp.table(comment="rows")
@dp.expect_or_quarantine("small", "points < 9")
def bronze():
    return spark.readStream.schema("id INT, team STRING, points INT").json(LANDING)

@dp.table
def silver():
    return dp.read_stream("bronze").select("id", (F.col("points") * 2).alias("twice"))

dp.create_streaming_table("latest")
dp.create_auto_cdc_flow(target="latest", source="bronze", keys=["team"], sequence_by="id")
dp.create_streaming_table("followed")
dp.create_auto_cdc_from_snapshot_flow(target="followed", source="silver", keys=["id"])
"""
NEW_NAMES = {"bronze": "raw", "silver": "clean", "latest": "newest", "followed": "trailed"}
OTHER = """
from headwater import pipelines as dp

@dp.table(name="shop.clean")
def clean():
    return spark.readStream.table("shop.raw").selectExpr("id", "points * 2 AS twice")
"""


def rows(first: int, last: int) -> list[dict[str, object]]:
    """Rows; each third is quarantined."""
    return [{"id": n, "team": "ab"[n % 2], "points": 9 if n % 3 == 0 else n % 9} for n in range(first, last)]


def renamed(text: str) -> str:
    """The source with the new names."""
    for old, new in NEW_NAMES.items():
        text = text.replace(f'"{old}"', f'"{new}"').replace(f"def {old}(", f"def {new}(")
    return text


def call(case: PipelineCase, *arguments: str) -> int:
    """The exit code of a verb."""
    verb, *rest = arguments
    return main([verb, str(case.folder), *rest, f"--storage={case.storage}", f"--warehouse={case.warehouse}"])


def forget_mark(case: PipelineCase, flow: str) -> None:
    """The driver died between the commit of the last batch and its mark."""
    commits = case.checkpoint(flow).live_folder() / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


def batches(case: PipelineCase, flow: str) -> dict[int, int | None]:
    """How many rows the event log says that each batch wrote; None where it only says how far the old name came."""
    records = case.events(flow=flow, level="METRICS", event_type="flow_progress")
    metrics = {r["origin"]["batch_id"]: r["details"]["flow_progress"].get("metrics", {}) for r in records}
    assert len(records) == len(metrics)
    return {batch: counts.get("num_output_rows") for batch, counts in metrics.items()}


def equals_the_batch(case: PipelineCase, everything: list[dict[str, object]]) -> None:
    """Each table is its query over all rows."""
    passed = [row for row in everything if row["points"] != 9]
    assert Counter(case.rows("raw")) == Counter((r["id"], r["team"], r["points"]) for r in passed)
    assert len(case.rows("raw_quarantine", "id")) == len(everything) - len(passed)
    assert Counter(case.rows("clean")) == Counter((r["id"], int(str(r["points"])) * 2) for r in passed)


def killed_in_its_first_steps(case: PipelineCase, table: str) -> str:
    """What a driver leaves that is killed as it begins: tables that were about to be made, and a plan, half-written.

    The name of the plan's file. Spark and Delta by themselves would refuse for good.
    """
    for name in (table, f"{table}_quarantine"):
        (case.table(name) / "_delta_log" / "_staged_commits").mkdir(parents=True)
    checkpoint = case.checkpoint(table)
    for log in ("offsets", "commits"):
        (checkpoint.epoch_folder(0) / log).mkdir(parents=True)
    (checkpoint.epoch_folder(0) / "metadata").write_text('{"id":"6a4f8a44-0d3c-4b0e-9d7b-4b7a5f3b1c55"}')
    half = checkpoint.epoch_folder(0) / "offsets" / ".0.8f2d.tmp"
    half.write_text("v1\n")
    checkpoint.write_state(FlowState())
    return half.name


@pytest.mark.usefixtures("spark")
def test_an_update_takes_in_what_is_new(tmp_path: Path):
    """Streams, aggregates, AUTO CDC and snapshots go on under new names, one table in another pipeline; what a driver that was
    killed in its first steps has left does not keep the first update from beginning.
    """
    case = PipelineCase(tmp_path, SOURCE)
    case.land(rows(0, 8))
    half = killed_in_its_first_steps(case, "bronze")
    assert case.update().state == "COMPLETED"
    (record,) = case.events(event_type="operation_progress", containing="CHECKPOINT_MENDED")
    assert half in record["message"]
    assert [row[0] for row in case.rows("bronze")] == [1, 2, 4, 5, 7]
    identities = {old: table_id(case.table(old)) for old in NEW_NAMES}
    for flow in ("bronze", "silver", "latest"):
        forget_mark(case, flow)
    for old, new in NEW_NAMES.items():
        assert call(case, "rename", old, new, "--yes") == 0
    assert {old: table_id(case.table(new)) for old, new in NEW_NAMES.items()} == identities

    # The sources still say the old names.
    code, answer = case.run()
    assert (code, answer["error"]["condition"]) == (3, "TABLE_MOVED")
    case.rewrite(renamed(SOURCE))
    case.land(rows(8, 12))
    done = case.update()
    assert done.state == "COMPLETED", done.error
    equals_the_batch(case, rows(0, 12))
    last = {team: n for n, team, _ in case.rows("raw")}
    assert {team: n for n, team in case.rows("newest", "id, team")} == last
    assert sorted(case.rows("trailed", "id, twice")) == sorted(case.rows("clean"))
    # The batch in flight came again and was known: it is recorded once, and what is new is one batch more.
    assert batches(case, "raw") == {0: None, 1: 3}
    assert batches(case, "clean") == {0: None, 1: 3}
    assert [conditions_of(case, NEW_NAMES[flow]) for flow in ("bronze", "silver", "latest")] == [[], [], []]
    left = [path for path in case.storage.rglob("*") if path.is_file() and "events" not in path.parts]
    old_places = [str(case.checkpoint(old).folder) for old in NEW_NAMES]
    live = [path for path in left if "checkpoints" in path.parts and path.name != "moved.json"]
    assert not [p for p in live for place in old_places if place.encode() in p.read_bytes()]

    folder = case.root / "other"
    (folder / "transformations").mkdir(parents=True)
    (folder / "pipeline.yml").write_text("name: other\nschema: mart\n")
    (folder / "transformations" / "main.py").write_text(OTHER)
    assert call(case, "move", "clean", "--to", str(folder), "--yes") == 0
    text = renamed(SOURCE)
    start, end = text.index("@dp.table\ndef clean"), text.index("dp.create_streaming_table")
    case.rewrite(text[:start] + text[end:])
    case.land(rows(12, 20))
    assert case.update(tables=("raw",)).state == "COMPLETED"
    other = open_project(folder, storage=case.storage, warehouse=case.warehouse, environment={})
    moved = run_update(other, UpdateRequest(Selection()))
    assert [(o.flow, o.output_rows) for o in moved.outcomes] == [("shop.clean", 5)]
    equals_the_batch(case, rows(0, 20))
