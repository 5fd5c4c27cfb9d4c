"""A table goes with all that belongs to it, and with nothing else."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.killed_removals import Killed, killed_at_tree
from tests.unit.headwater.metrics.conftest import write_rows

from headwater.checkpoints.conditions import TableNested
from headwater.commands.command_line import main
from headwater.definitions.dataset import DatasetKind, quarantine_folder
from headwater.delta_log.table_history import table_exists
from headwater.doctor import dropping
from headwater.doctor.dropping import drop, plan_drop
from headwater.errors import RefusedForSafety
from headwater.event_log.reader import events
from headwater.event_log.writer import EventLogWriter
from headwater.graph.manifest import DatasetEntry
from headwater.storage.walking import remove_tree


def call(done, capsys, *arguments: str):
    """What ``drop`` answers."""
    project = done.project
    code = main(
        [
            "drop",
            str(project.folder),
            *arguments,
            f"--storage={project.storage}",
            f"--warehouse={project.warehouse}",
            "--json",
        ]
    )
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


def test_the_plan_removes_nothing(done, capsys):
    """Without --yes all is as it was."""
    code, answer = call(done, capsys, "silver")
    assert (code, answer["state"]) == (0, "PLANNED")
    assert done.table("silver").is_dir()
    assert done.checkpoint("silver").state_file.exists()


def test_it_removes_table_and_checkpoints(done, capsys):
    """Rows, epochs and state go; other tables stay; the event log says so."""
    code, answer = call(done, capsys, "silver", "--yes")
    assert (code, answer["state"]) == (0, "COMPLETED")
    assert not done.table("silver").exists()
    assert not done.checkpoint("silver").folder.exists()
    assert done.table("bronze").is_dir()
    assert done.checkpoint("bronze").state_file.exists()
    (record,) = events(done.project.state_folder, event_type="user_action")
    assert (record["details"]["user_action"]["action"], record["origin"]["dataset_name"]) == (
        "DROP",
        "silver",
    )


def test_a_table_of_somebodys_own_with_the_name_of_a_quarantine_stays(done, capsys):
    """What goes with a table is known by its columns: another table beside it is left alone."""
    table = done.table("silver")
    beside = table.with_name(quarantine_folder(table.name))
    write_deltalake(str(beside), pa.table({"id": [1]}))
    assert call(done, capsys, "silver", "--yes")[0] == 0
    assert not table.exists()
    assert table_exists(beside)


def test_what_others_read_stays(done, capsys):
    """A table that a stream reads is refused, with everything that depends on it; both together are not refused, and the plan counts the rows."""
    code, answer = call(done, capsys, "bronze", "--yes")
    assert (code, answer["error"]["condition"]) == (3, "REFUSED_FOR_SAFETY")
    assert "headwater drop PIPELINE_DIR bronze silver;" in answer["error"]["remedy"]
    _, answer = call(done, capsys, "bronze", "silver")
    assert [table["lost"] for table in answer["tables"]] == ["2 rows of the table"] * 2
    assert done.table("bronze").is_dir()
    assert call(done, capsys, "bronze", "silver", "--yes")[0] == 0
    assert not done.table("bronze").exists()


def test_a_view_does_not_hold_a_table(done, capsys):
    """It has no rows of its own; who reads the table through it counts."""
    seen = DatasetEntry(name="seen", kind=DatasetKind.TEMPORARY_VIEW)
    flow = done.flow("silver").model_copy(update={"name": "seen", "target": "seen"})
    manifest = done.manifest
    more = {"datasets": (*manifest.datasets, seen), "flows": (*manifest.flows, flow)}
    done.manifest = manifest.model_copy(update=more)
    done.store_manifest()
    code, answer = call(done, capsys, "bronze")
    assert code == 3
    assert "Streams into silver read 'bronze'" in answer["error"]["message"]
    assert call(done, capsys, "bronze", "silver", "--yes")[0] == 0


def test_a_checkpoint_without_a_definition(done, capsys):
    """What the sources no longer define is dropped, too; unknown names are reported."""
    old = done.project.state_folder / "checkpoints" / "old" / "old"
    old.mkdir(parents=True)
    (old / "flow.json").write_text("{}")
    assert call(done, capsys, "old", "--yes")[0] == 0
    assert not old.parent.exists()
    for name in ("older", "..", "../checkpoints/old", "."):
        assert call(done, capsys, name)[0] == 2


@pytest.mark.parametrize("flag", [(), ("--yes",)])
def test_not_while_an_update_runs(done, capsys, flag):
    """The lease is respected; to look at the plan it is not needed."""
    with done.project.lease("somebody"):
        assert call(done, capsys, "silver", *flag)[0] == (3 if flag else 0)
    assert done.table("silver").is_dir()


@pytest.mark.parametrize("name", ["", ".", "a/b", "bronze\n"])
def test_no_name_stands_for_all_checkpoints(done, capsys, name):
    """An empty name would be the folder of them all."""
    code, answer = call(done, capsys, name, "--yes")
    assert (code, answer["error"]["condition"]) == (2, "UNKNOWN_DATASET")
    assert done.checkpoint("bronze").state_file.exists()
    assert done.checkpoint("silver").state_file.exists()


def test_a_table_inside_it_stays(done, capsys):
    """Another table in its folder would go with it: the drop is refused, nothing is removed; also one that came since the plan."""
    inner = done.table("silver") / "items"
    project = done.project
    plan = plan_drop(project, done.manifest, "silver")
    write_deltalake(str(inner), pa.table({"id": [1, 2]}))
    code, answer = call(done, capsys, "silver", "--yes")
    assert (code, answer["error"]["condition"]) == (3, "TABLE_NESTED")
    with pytest.raises(TableNested):
        drop(project, [plan], lambda: [plan_drop(project, done.manifest, "silver")])
    assert DeltaTable(str(inner)).to_pyarrow_table().num_rows == 2
    assert done.checkpoint("silver").state_file.exists()
    remove_tree(inner)
    assert call(done, capsys, "silver", "--yes")[0] == 0


@pytest.mark.parametrize("comes", ["rows", "a table"])
def test_a_plan_that_is_outdated(done, comes):
    """An update came between the plan and the lease: rows that nobody was shown stay."""
    table = done.table("gold")
    if comes == "a table":
        remove_tree(table)
    plan = plan_drop(done.project, done.manifest, "gold")
    write_rows(table, 3)
    with pytest.raises(RefusedForSafety, match="has changed since"):
        drop(done.project, [plan], lambda: [plan_drop(done.project, done.manifest, "gold")])
    assert table_exists(table)
    assert done.checkpoint("gold").state_file.exists()
    assert not events(done.project.state_folder, event_type="user_action")


def test_one_that_is_run_again_is_recorded_once(done, capsys):
    """Also where the first one did not come to its record; a table that came anew and was dropped again has two."""
    for folder in plan_drop(done.project, done.manifest, "gold").folders:
        remove_tree(folder)

    def records():
        assert call(done, capsys, "gold", "--yes")[0] == 0
        return len(events(done.project.state_folder, event_type="user_action"))

    assert [records(), records()] == [1, 1]
    write_rows(done.table("gold"), 3)
    assert [records(), records()] == [2, 2]
    with EventLogWriter(done.project.state_folder, "orders", "orders", "u") as log:
        log.emit("flow_progress", "It was filled.", flow="gold", dataset="gold")
    assert [records(), records()] == [3, 3]


@pytest.mark.parametrize("removed", range(6))
def test_killed_between_its_steps(done, capsys, monkeypatch, removed):
    """Whatever is left, no table is there without its files, the other tables are whole, and the same drop removes the rest."""
    with monkeypatch.context() as patched:
        patched.setattr(dropping, "remove_tree", killed_at_tree(removed, dropping.remove_tree))
        if removed < 3:
            with pytest.raises(Killed):
                call(done, capsys, "silver", "--yes")
        else:
            assert call(done, capsys, "silver", "--yes")[0] == 0
    if table_exists(done.table("silver")):
        assert len(DeltaTable(str(done.table("silver"))).to_pyarrow_table()) == 2
    assert len(DeltaTable(str(done.table("bronze"))).to_pyarrow_table()) == 2
    code, answer = call(done, capsys, "silver", "--yes")
    assert (code, answer["tables"][0]["folders"]) == (0, []) if removed > 2 else code == 0
    assert not done.table("silver").exists()
    assert not done.checkpoint("silver").folder.exists()


def test_names_as_people_write_them(done, capsys):
    """A table that is named twice is dropped once; one that is almost a table's is answered with that."""
    code, answer = call(done, capsys, "gold", "gold", "GOLD")
    assert (code, [table["dataset"] for table in answer["tables"]]) == (0, ["gold"])
    code, answer = call(done, capsys, "gol")
    assert (code, answer["error"]["remedy"]) == (2, "Did you mean 'gold'?")


@pytest.mark.parametrize(
    ("rows", "lost"),
    [
        ({}, "no rows"), ({"t": 3}, "3 rows of the table"), ({"t": 3, "q": 2}, "3 rows of the table, and 2 that its rules kept out"),
        ({"t": None, "q": 2}, "all rows of the table; how many can't be known"),
        ({"t": 3, "q": None}, "all rows of the table; how many can't be known"),
        ({"q": 2}, "2 rows that its rules kept out"),
    ],
)  # fmt: skip
def test_which_rows_a_drop_loses(monkeypatch, rows, lost):
    """Those of the table and of its quarantine, also where a drop that was killed has left that one alone."""
    monkeypatch.setattr(dropping, "table_exists", lambda table: table in rows)
    monkeypatch.setattr(dropping, "rows_of_table", lambda table: rows[table])
    assert dropping._lost(["t", "q"]) == lost
