"""After what a start makes good by itself, and after each repair, tables are what their queries give over all input."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

from tests.prepared_pipeline import FLOWS, Prepared, both, cut, empty, flip, lose, put
from tests.repaired_pipeline import repair, treated, update_and_compare

from headwater.leases.file_lease import update_lease

__all__ = ["treated"]

ANOTHER_ID = '{"id":"00000000-0000-0000-0000-000000000000"}'

Mended = dict[str, str]


def last_entries(done: Prepared) -> Mended:
    """The newest entry of each log."""
    lose("offsets/{last}")(done.folder("bronze"))
    empty("commits/{last}")(done.folder("silver"))
    cut("offsets/{last}")(done.folder("running"))
    return {"bronze": "OFFSETS_LOST", "silver": "COMMITS_DAMAGED", "running": "OFFSETS_DAMAGED"}


def entries_before(done: Prepared) -> Mended:
    """Entries before the newest, the whole log, and the id with all marks, which Spark can do without."""
    lose("offsets/{before}")(done.folder("bronze"))
    lose("offsets")(done.folder("silver"))
    lose("metadata", "commits")(done.folder("running"))
    return {"bronze": "OFFSETS_LOST", "silver": "OFFSETS_LOST", "running": "METADATA_LOST"}


def rebuild_restore_and_rewind(done: Prepared) -> Mended:
    """Positions from the event log, copies, and a step back to a whole state."""
    code, answer, _ = done.call("checkpoints", "snapshot")
    assert (code, len(answer["snapshots"])) == (0, 3)
    lose("offsets", "commits")(done.folder("silver"))
    lose("sources")(done.folder("bronze"))
    lose("state/0/1/{next}*.zip")(done.folder("running"))
    repair(done, "silver", "--action=rebuild", condition="CHECKPOINT_REWOUND")
    repair(done, "bronze", "--action=restore", condition="FILE_LOG_LOST")
    repair(done, "running", "--action=rewind", condition="STATE_LOST")
    return {}


def wholly_gone(done: Prepared) -> Mended:
    """Also where ``flow.json`` is gone; a flow with state takes its copy, files are told by their age."""
    done.call("checkpoints", "snapshot", "running")
    shutil.rmtree(done.case.checkpoint("silver").folder)
    lose("sources")(done.folder("bronze"))
    lose("state")(done.folder("running"))
    repair(done, "silver", "--action=rebuild", condition="CHECKPOINT_LOST")
    by_age = ("--action=new-epoch", "--from-time=2100-01-01")
    repair(done, "bronze", *by_age, condition="FILE_LOG_LOST", doubled="can't")
    repair(done, "running", "--action=restore", condition="STATE_LOST")
    return {}


def new_epochs_and_mending(done: Prepared) -> Mended:
    """From a version, from the start where rows are merged by key, and the id put back."""
    shutil.rmtree(done.folder("silver"))
    put("metadata", ANOTHER_ID)(done.folder("bronze"))
    lose("state")(done.folder("running"))
    behind = f"--from-version={done.case.version('bronze') + 1}"
    repair(done, "silver", "--action=new-epoch", behind, condition="CHECKPOINT_LOST")
    repair(done, "bronze", "--action=mend", condition="QUERY_ID_CHANGED")
    repair(done, "running", "--action=new-epoch", "--from-start", condition="STATE_LOST")
    return {}


def a_batch_in_flight(done: Prepared) -> Mended:
    """A plan that was never carried out, one whose entry is cut and whose mark is gone, and the only one of an epoch with state."""
    put("offsets/{next}", "")(done.folder("bronze"))
    both(cut("offsets/{last}"), lose("commits/{last}"))(done.folder("silver"))
    flip("offsets/{last}")(done.folder("running"))
    return {"bronze": "OFFSETS_DAMAGED", "silver": "OFFSETS_DAMAGED", "running": "OFFSETS_DAMAGED"}


def full_refresh_and_an_older_copy(done: Prepared) -> Mended:
    """A table that was rolled back is caught up by a step back; a full refresh fills a table anew."""
    log, version = done.case.table("silver") / "_delta_log", done.case.version("silver")
    for file in log.glob(f"*{version:020d}.*"):
        file.unlink()
    commits = done.folder("silver") / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    _, answer, _ = done.call("repair", "silver", "--action=rewind", f"--batch={last}")
    assert answer["plan"]["lost"] == f"what batch {last} gave, if anything: the table has nothing of it"
    repair(done, "silver", "--action=rewind", condition="TABLE_ROLLED_BACK")
    lose("state")(done.folder("running"))
    repair(done, "running", "--action=full-refresh", condition="STATE_LOST")
    return {}


def copies(done: Prepared) -> Mended:
    """A copy is gone on from where positions are of a later version, or bytes of the state are other ones and a part is gone."""
    done.call("checkpoints", "snapshot")
    put("offsets/{last}", "v3\n{}\n{}")(done.folder("silver"))
    tables = done.folder("running") / "state/0/0/SSTs"
    # All: some may be of versions before the one that is gone on from.
    for name in [file.name for file in tables.iterdir() if file.name.endswith(".sst")]:
        flip(f"state/0/0/SSTs/{name}")(done.folder("running"))
    assert done.conditions("running", deep=True) == [("STATE_DAMAGED", False)]
    lose("state/0/1")(done.folder("running"))
    repair(done, "silver", "--action=restore", condition="OFFSETS_TOO_NEW")
    repair(done, "running", "--action=restore", condition="STATE_LOST")
    put_back_by_hand(done)
    return {}


def put_back_by_hand(done: Prepared) -> None:
    """A part of a table's log and a table that were away and are put back change nothing; nor does a state that is gone."""
    table = done.case.table("bronze")
    first = table / "_delta_log" / f"{1:020d}.json"
    first.rename(table / "kept")
    assert done.conditions("bronze") == [("TABLE_LOG_HOLE", False)]
    assert done.conditions("silver") == [("SOURCE_LOG_HOLE", False)]
    (table / "kept").rename(first)
    table.rename(done.case.root / "away")
    assert done.conditions("silver") == [("SOURCE_GONE", False)]
    (done.case.root / "away").rename(table)
    state = done.case.checkpoint("bronze").state_file
    state.rename(state.with_name("flow.json.aside"))


# Each begins with what the one before it left: its update proves that one's repairs a second time.
ROUNDS: tuple[Callable[[Prepared], Mended], ...] = (
    last_entries,
    entries_before,
    copies,
    rebuild_restore_and_rewind,
    full_refresh_and_an_older_copy,
    wholly_gone,
    new_epochs_and_mending,
    a_batch_in_flight,
)


def test_repairs_and_mending(treated: Prepared):
    """Damage that can be made good without losing or doubling a row is, by the start itself or by its remedy, one after the other."""
    for damage in ROUNDS:
        mended = damage(treated)
        assert {flow: treated.conditions(flow)[0] for flow in mended} == {
            flow: (condition, True) for flow, condition in mended.items()
        }, damage.__name__
        update_and_compare(treated, mended)
    update_and_compare(treated, {})


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
    assert treated.case.update(tables=("silver",)).state == "COMPLETED"
    assert len(treated.case.rows("silver")) == len(before) + 4
    assert plan("--action=rewind", "--batch=0") == ("no rows", "8 rows (batches 1 to 2)")
    assert plan("--action=new-epoch", "--from-start")[1].startswith("up to 16 rows")
    batches = treated.case.events(flow="silver", level="METRICS")
    assert [(e["origin"]["epoch"], e["origin"]["batch_id"]) for e in batches][-1] == (1, 2)


def test_what_is_refused(done: Prepared):
    """A repair waits for nobody's update, state is not rebuilt, a table that may not be reset is not, and what is whole is left alone."""
    with update_lease(done.case.project().state_folder, "somebody"):
        code, answer, _ = done.call("repair", "silver", "--action=rewind", "--yes")
        assert (code, answer["error"]["condition"]) == (3, "UPDATE_IN_PROGRESS")
    code, answer, _ = done.call("repair", "running", "--action=rebuild")
    assert (code, answer["error"]["condition"]) == (3, "REPAIR_NOT_POSSIBLE")
    code, answer, said = done.call("repair", "silver", "--action=mend", "--yes")
    assert (code, answer["state"], answer["plan"]["steps"]) == (0, "COMPLETED", [])
    assert said == "Nothing is wrong with the checkpoint of silver: nothing to do.\n"
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
