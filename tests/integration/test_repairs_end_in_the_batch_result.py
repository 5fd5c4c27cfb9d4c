"""After what a start makes good by itself, and after each repair, tables are what their queries give over all input."""

from __future__ import annotations

import json
import shutil

from tests.prepared_pipeline import FLOWS, Damage, Prepared, both, cut, empty, flip, lose, put
from tests.repaired_pipeline import repair, treated, update_and_compare

from headwater.leases.file_lease import update_lease

__all__ = ["treated"]

ANOTHER_ID = '{"id":"00000000-0000-0000-0000-000000000000"}'

# One update after each of these; the condition is what the event log tells of the flow.
MENDED: list[dict[str, tuple[Damage, str]]] = [
    {
        "bronze": (lose("offsets/{last}"), "OFFSETS_LOST"),
        "silver": (lose("metadata"), "METADATA_LOST"),
        "running": (lose("metadata"), "METADATA_LOST"),
    },
    {
        "bronze": (empty("metadata"), "METADATA_LOST"),
        "silver": (empty("commits/{last}"), "COMMITS_DAMAGED"),
        "running": (cut("commits/{last}"), "COMMITS_DAMAGED"),
    },
    {
        "bronze": (flip("offsets/{last}"), "OFFSETS_DAMAGED"),
        "silver": (empty("offsets/{last}"), "OFFSETS_DAMAGED"),
        "running": (cut("offsets/{last}"), "OFFSETS_DAMAGED"),
    },
    {
        "bronze": (lose("offsets/{before}"), "OFFSETS_LOST"),
        "silver": (lose("offsets"), "OFFSETS_LOST"),
        "running": (lose("offsets/{last}"), "OFFSETS_LOST"),
    },
    {
        "bronze": (put("offsets/{next}", ""), "OFFSETS_DAMAGED"),
        "silver": (both(cut("offsets/{last}"), lose("commits/{last}")), "OFFSETS_DAMAGED"),
        "running": (lose("offsets/{before}"), "OFFSETS_LOST"),
    },
]


def test_what_a_start_makes_good(done: Prepared):
    """Damage that can be made good without losing or doubling a row is, and the event log says so."""
    for round_ in MENDED:
        for flow, (damage, condition) in round_.items():
            damage(done.folder(flow))
            assert done.conditions(flow)[0] == (condition, True)
        done.land()
        report = done.case.update()
        assert (report.state, report.error) == ("COMPLETED", None)
        done.tables_equal_the_batch()
        records = done.case.events(update_id=report.result.update_id, event_type="operation_progress")
        operations = [(e["origin"]["flow_name"], e["details"]["operation_progress"]) for e in records]
        repaired = {
            flow: body["condition"] for flow, body in operations if body["type"] == "CHECKPOINT_MENDED"
        }
        assert repaired == {flow: condition for flow, (_, condition) in round_.items()}
        assert [done.conditions(flow) for flow in FLOWS] == [[], [], []]


def test_rebuild_restore_and_rewind(treated: Prepared):
    """Positions from the event log, copies, and a step back to a whole state lose and double nothing."""
    code, answer, _ = treated.call("checkpoints", "snapshot")
    assert (code, len(answer["snapshots"])) == (0, 3)
    lose("offsets", "commits")(treated.folder("silver"))
    lose("sources")(treated.folder("bronze"))
    lose("state/0/1/3.zip")(treated.folder("running"))
    repair(treated, "silver", "--action=rebuild", condition="CHECKPOINT_REWOUND")
    repair(treated, "bronze", "--action=restore", condition="FILE_LOG_LOST")
    repair(treated, "running", "--action=rewind", condition="STATE_LOST")
    update_and_compare(treated)


def test_rebuild_of_what_is_wholly_gone(treated: Prepared):
    """Also where ``flow.json`` is gone; a flow with state takes its copy, files are told by their age."""
    treated.call("checkpoints", "snapshot", "running")
    shutil.rmtree(treated.case.checkpoint("silver").folder)
    lose("sources")(treated.folder("bronze"))
    lose("state")(treated.folder("running"))
    repair(treated, "silver", "--action=rebuild", condition="CHECKPOINT_LOST")
    repair(
        treated,
        "bronze",
        "--action=new-epoch",
        "--from-time=2100-01-01",
        condition="FILE_LOG_LOST",
        doubled="can't",
    )
    repair(treated, "running", "--action=restore", condition="STATE_LOST")
    update_and_compare(treated)


def test_new_epochs_and_mending(treated: Prepared):
    """From a version, from the start where rows are merged by key, and the id put back."""
    shutil.rmtree(treated.folder("silver"))
    put("metadata", ANOTHER_ID)(treated.folder("bronze"))
    lose("state")(treated.folder("running"))
    repair(treated, "silver", "--action=new-epoch", "--from-version=3", condition="CHECKPOINT_LOST")
    repair(treated, "bronze", "--action=mend", condition="QUERY_ID_CHANGED")
    repair(treated, "running", "--action=new-epoch", "--from-start", condition="STATE_LOST")
    update_and_compare(treated)


def test_full_refresh_and_an_older_copy(treated: Prepared):
    """A table that was rolled back is caught up by a step back; a full refresh fills a table anew."""
    log = treated.case.table("silver") / "_delta_log"
    for file in log.glob(f"*{2:020d}.*"):
        file.unlink()
    _, answer, _ = treated.call("repair", "silver", "--action=rewind", "--batch=2")
    assert answer["plan"]["lost"] == "what batch 2 gave, if anything: the table has nothing of it"
    repair(treated, "silver", "--action=rewind", condition="TABLE_ROLLED_BACK")
    lose("state")(treated.folder("running"))
    repair(treated, "running", "--action=full-refresh", condition="STATE_LOST")
    update_and_compare(treated)


def test_the_cost_is_told(treated: Prepared):
    """A step back further than the table doubles the rows that the plan says, and not one more; also rows of earlier epochs."""

    def plan(*arguments: str) -> tuple[str, str]:
        code, answer, errors = treated.call("repair", "silver", *arguments)
        assert code == 0, errors
        return answer["plan"]["lost"], answer["plan"]["doubled"]

    _, answer, _ = treated.call("repair", "silver", "--action=rewind", "--batch=1", "--yes")
    assert answer["repair"]["doubled"] == "4 rows (batch 2)"
    assert plan("--action=rewind") == ("no rows", "4 rows (batch 2)")
    assert plan("--action=rewind", "--batch=0") == ("no rows", "8 rows (batches 1 to 2)")
    assert plan("--action=restore") == ("no rows", "no rows")
    assert plan("--action=new-epoch", "--from-start")[1].startswith("up to 12 rows")
    before = treated.case.rows("silver")
    assert treated.case.update().state == "COMPLETED"
    assert len(treated.case.rows("silver")) == len(before) + 4
    assert plan("--action=rewind", "--batch=0") == ("no rows", "8 rows (batches 1 to 2)")
    assert plan("--action=new-epoch", "--from-start")[1].startswith("up to 16 rows")
    batches = treated.case.events(flow="silver", level="METRICS")
    assert [(e["origin"]["epoch"], e["origin"]["batch_id"]) for e in batches][-1] == (1, 2)


def test_what_is_refused(done: Prepared):
    """A repair waits for nobody's update, state is not rebuilt, and a table that may not be reset is not."""
    with update_lease(done.case.project().state_folder, "somebody"):
        code, answer, _ = done.call("repair", "silver", "--action=rewind", "--yes")
        assert (code, answer["error"]["condition"]) == (3, "UPDATE_IN_PROGRESS")
    code, answer, _ = done.call("repair", "running", "--action=rebuild")
    assert (code, answer["error"]["condition"]) == (3, "REPAIR_NOT_POSSIBLE")
    assert done.call("repair", "silver", "--action=rebuild", "--batch=1")[0] == 2
    assert done.call("repair", "slver", "--action=rebuild")[0] == 2
    file = done.case.project().state_folder / "manifest.json"
    manifest = json.loads(file.read_text())
    for dataset in manifest["datasets"]:
        dataset["table_properties"] = {"pipelines.reset.allowed": "false"}
    file.write_text(json.dumps(manifest))
    for arguments in (("--action=full-refresh",), ("--action=new-epoch", "--from-start")):
        code, answer, _ = done.call("repair", "silver", *arguments)
        assert (code, answer["error"]["condition"]) == (3, "RESET_NOT_ALLOWED")
    assert done.call("repair", "silver", "--action=new-epoch", "--from-version=3")[0] == 0


def test_inspect_shows_positions_beside_heads(done: Prepared):
    """Batches, offsets against the source's head, state, epochs, copies."""
    done.call("checkpoints", "snapshot", "silver")
    code, answer, _ = done.call("checkpoints", "inspect")
    flows = {flow["flow"]: flow for flow in answer["flows"]}
    assert (code, set(flows)) == (0, set(FLOWS))
    silver, running = flows["silver"], flows["running"]
    assert (silver["epoch"], silver["planned_batches"], silver["last_batch"]) == (0, "0-2", 2)
    assert silver["sources"][0]["position"] == "version 3"
    assert silver["sources"][0]["behind"]["moved"] is False
    assert (silver["table"]["last_batch"], silver["state"]) == (2, None)
    assert [snapshot["last_batch"] for snapshot in silver["snapshots"]] == [2]
    assert running["state"]["operators"] == ["Aggregate(team: string) count(1)"]
    assert running["state"]["size_by_operator"]["0"] > 0
    assert flows["bronze"]["sources"][0]["position"] == "files up to 2"
