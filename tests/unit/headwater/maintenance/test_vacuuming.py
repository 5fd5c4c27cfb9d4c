"""Vacuum removes what nobody needs, and nothing that a reader has before it."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.object_stores import make_old
from tests.unit.headwater.metrics.conftest import delta_offset, write_checkpoint, write_rows

from headwater.checkpoints.layout import change_memory
from headwater.checkpoints.pending_replacement import PendingReplacement
from headwater.maintenance.reader_positions import ReaderPosition
from headwater.maintenance.vacuuming import Vacuum
from headwater.storage.walking import remove_tree

VACUUM = ("--only", "vacuum", "--tables", "bronze", "--retention", "0 hours")


@pytest.fixture
def rewritten(kept):
    """Bronze had two commits of rows, and its files were put together in a third."""
    write_rows(kept.pipeline.table("bronze"), 3)
    write_rows(kept.pipeline.table("bronze"), 4)
    kept.before = kept.files("bronze")
    DeltaTable(str(kept.pipeline.table("bronze"))).optimize.compact()
    return kept


def test_files_that_all_have_read_go(rewritten):
    """A reader at the head needs none of the old files; only those of the newest version stay."""
    rewritten.read_on(4)
    code, answer = rewritten.call(*VACUUM)
    assert (code, answer["plan"]["steps"][0]["files"]) == (0, 3)
    assert rewritten.files("bronze") == rewritten.before | rewritten.live("bronze")
    assert rewritten.call(*VACUUM, "--yes")[1]["steps"][0]["message"] == "3 files removed"
    assert rewritten.files("bronze") == rewritten.live("bronze")


def test_a_reader_that_is_behind_keeps_its_files(rewritten):
    """What was added from its version on stays, though it was removed since; only what it has read goes."""
    rewritten.read_on(2)
    code, _ = rewritten.call(*VACUUM, "--yes")
    assert code == 0
    assert len(rewritten.files("bronze") & rewritten.before) == 1
    assert "goes on at version 1" in _after_reading(rewritten, 1)


def _after_reading(kept, version: int) -> str:
    kept.read_on(version, batch=2)
    return kept.left_out(*VACUUM)


def test_a_first_snapshot_that_is_being_read_stays(rewritten):
    """A stream in the middle of its first read needs the whole version that it began with."""
    rewritten.read_on(1, starting=True)
    rewritten.call(*VACUUM, "--yes")
    assert rewritten.before <= rewritten.files("bronze")


def test_readers_of_changes_keep_theirs(rewritten):
    """The kept position of a task that reads changes counts, and so does a range that it has begun."""
    rewritten.read_on(4)
    table = rewritten.pipeline.table("bronze")
    folder = rewritten.project.storage / "change_feeds" / "readers" / "tasks" / "report"
    folder.mkdir(parents=True)
    table_id = str(DeltaTable(str(table)).metadata().id)
    position = {"table": "shop.bronze", "position": {"table_id": table_id, "version": 0}, "begun": None}
    (folder / "add_up.shop.bronze.json").write_text(json.dumps(position))
    assert "reader of changes tasks/report/add_up.shop.bronze goes on at version 1" in _plan(rewritten)
    position["begun"] = {"table_id": table_id, "start_version": 0, "end_version": 2, "snapshot": False}
    (folder / "add_up.shop.bronze.json").write_text(json.dumps(position))
    assert "goes on at version 0" in rewritten.left_out(*VACUUM)


def _plan(kept) -> str:
    return str(kept.call(*VACUUM)[1]["plan"])


def test_views_that_follow_changes_keep_theirs(kept):
    """A view that is refreshed by what changed needs what came since its last refresh; one that is recomputed needs nothing."""
    table = kept.pipeline.table("silver")
    write_rows(table, 3)
    write_rows(table, 4)
    DeltaTable(str(table)).optimize.compact()
    table_id = str(DeltaTable(str(table)).metadata().id)
    vacuum = ("--only", "vacuum", "--tables", "silver", "--retention", "0 hours")
    head = DeltaTable(str(table)).version()
    read = {"input_versions": {"shop/silver": f"{table_id}@0"}}
    kept.pipeline.complete("gold", **read, refresh={"follows": False})
    before = kept.call(*vacuum)[1]["plan"]["steps"][0]["files"]
    kept.pipeline.complete("gold", **read, refresh={"follows": True})
    plan = kept.call(*vacuum)[1]["plan"]
    assert "the view gold of" in str(plan)
    assert "goes on at version 1" in str(plan)
    assert sum(step["files"] for step in plan["steps"]) < before
    assert head > 1


def test_an_unfinished_backfill_keeps_what_it_may_put_back(rewritten):
    """The rows that a killed backfill took along are in files that its commit has removed: they stay until they are put back."""
    rewritten.read_on(4)
    pending = PendingReplacement("bronze", "orders.bronze@backfill-1", "true", "{}", {"orders.bronze@0": 1})
    with pending.written_down(rewritten.project.state_folder):
        pass
    assert "an unfinished backfill of bronze goes on at version 2" in _plan(rewritten)
    rewritten.call(*VACUUM, "--yes")
    assert len(rewritten.files("bronze") & rewritten.before) == 1
    pending.cross_out(rewritten.project.state_folder)
    rewritten.call(*VACUUM, "--yes")
    assert rewritten.files("bronze") == rewritten.live("bronze")


def test_other_pipelines_and_forgotten_flows_count(rewritten):
    """A checkpoint of any pipeline in the storage counts, whether a definition still has its flow or not."""
    rewritten.read_on(4)
    other = rewritten.project.storage / "pipelines" / "other" / "checkpoints" / "t" / "f" / "0"
    write_checkpoint(other, 0, [None, delta_offset(rewritten.pipeline.table("bronze"), 1)])
    assert "the flow f of other goes on at version 1" in _plan(rewritten)


def test_declared_readers_count(rewritten):
    """A stream outside of Headwater is declared by its checkpoint, or by how far back it reads."""
    rewritten.read_on(4)
    spec = rewritten.project.folder / "pipeline.yml"
    outside = rewritten.project.folder / "outside"
    write_checkpoint(outside, 0, [delta_offset(rewritten.pipeline.table("bronze"), 1)])
    head = spec.read_text()
    spec.write_text(head + "maintenance:\n  readers:\n  - {name: bi, table: bronze, checkpoint: outside}\n")
    assert "the declared reader bi goes on at version 1" in _plan(rewritten)
    spec.write_text(head + "maintenance:\n  readers:\n  - {name: bi, table: bronze, needs: 2 days}\n")
    assert rewritten.call(*VACUUM)[1]["plan"]["steps"] == []
    spec.write_text(head + "maintenance:\n  readers:\n  - {name: bi, table: bronze, checkpoint: nowhere}\n")
    assert "no position in this table" in rewritten.left_out(*VACUUM)


@pytest.mark.parametrize("damage", ["offsets", "first batch"])
def test_where_a_position_is_not_known_nothing_goes(rewritten, damage):
    """A damaged checkpoint, and a first batch in flight, leave every file where it is."""
    epoch = rewritten.pipeline.checkpoint("silver").epoch_folder(0)
    if damage == "offsets":
        (epoch / "offsets" / "0").write_text("")
    else:
        (epoch / "commits" / "0").unlink()
    assert "No file is removed" in rewritten.left_out(*VACUUM)
    rewritten.call(*VACUUM, "--yes")
    assert rewritten.before <= rewritten.files("bronze")


def test_where_the_log_is_cut_nothing_goes(rewritten):
    """A reader still has to read a commit that is gone from the log: it is not known what it needs."""
    rewritten.read_on(1)
    table = rewritten.pipeline.table("bronze")
    DeltaTable(str(table)).create_checkpoint()
    for version in (0, 1, 2):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    assert "version 1, which is gone" in rewritten.left_out(*VACUUM)


def test_the_tables_own_retention_holds(rewritten):
    """Without --retention files stay for the week of the table's property."""
    rewritten.read_on(4)
    assert rewritten.call("--only", "vacuum", "--tables", "bronze")[1]["plan"]["steps"] == []


def test_files_in_the_making_stay(rewritten):
    """A young file that no commit names may be one of a commit to come; an old one is a leftover."""
    rewritten.read_on(4)
    table = rewritten.pipeline.table("bronze")
    for name, age in (("young.parquet", 0), ("old.parquet", 2 * 86400)):
        (table / name).write_text("x")
        make_old(table / name, age)
    rewritten.call(*VACUUM, "--yes")
    assert rewritten.files("bronze") == rewritten.live("bronze") | {"young.parquet"}


def test_a_change_feed_is_kept_for_its_reader(rewritten):
    """Files of changes that a reader has before it stay, though their age is over; the feed still reads the same."""
    import pyarrow as pa

    table = rewritten.pipeline.table("bronze")
    remove_tree(table)
    tracked = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(str(table), pa.table({"id": [1, 2]}), configuration=tracked)
    DeltaTable(str(table)).update(updates={"id": "id + 10"}, predicate="id = 1")
    DeltaTable(str(table)).delete("id = 2")
    feed = sorted(table.glob("_change_data/*"))
    for path in feed:
        make_old(path, 40 * 86400)

    def changes() -> int:
        return len(pa.table(DeltaTable(str(table)).load_cdf(starting_version=1).read_all()))

    expected = changes()
    rewritten.read_on(1)
    rewritten.call(*VACUUM, "--yes")
    assert feed
    assert sorted(table.glob("_change_data/*")) == feed
    assert changes() == expected == 3
    rewritten.read_on(3, batch=2)
    rewritten.call(*VACUUM, "--yes")
    assert not list(table.glob("_change_data/*"))


def test_what_auto_cdc_may_go_back_to_stays(kept):
    """Of what it keeps beside a table, the newest version and the one before stay, and older files go."""
    events = change_memory(kept.project.state_folder, "bronze") / "events"
    for value in range(3):
        write_deltalake(str(events), pa.table({"id": [value]}), mode="overwrite")
    code, answer = kept.call(*VACUUM, "--yes")
    (step,) = (step for step in answer["steps"] if step["subject"] == "bronze (AUTO CDC)")
    assert (code, step["message"]) == (0, "1 files removed")
    for version in (1, 2):
        assert DeltaTable(str(events), version=version).to_pyarrow_table()["id"].to_pylist() == [version]
    assert "may go back to version 1" in kept.left_out(*VACUUM)


@pytest.mark.parametrize("below", ["items", "deep/er/items", "day=1/items"])
def test_a_table_below_is_left_alone(rewritten, below):
    """To the outer table's log the files of the inner one are leftovers, ten days old; they are another table's."""
    outer = rewritten.pipeline.table("bronze")
    inner = outer / below
    write_deltalake(str(inner), pa.table({"id": [1, 2]}))
    write_deltalake(str(inner), pa.table({"id": [3]}), mode="append")
    leftover = outer / "deep" / "left.parquet"
    leftover.parent.mkdir(exist_ok=True)
    leftover.write_bytes(b"x")
    for file in outer.rglob("*"):
        make_old(file, 10 * 86400)
    rewritten.read_on(4)
    before = {path for path in inner.rglob("*") if path.is_file()}
    code, _ = rewritten.call(*VACUUM, "--yes")
    assert code == 0
    assert {path for path in inner.rglob("*") if path.is_file()} == before
    assert DeltaTable(str(inner)).to_pyarrow_table().num_rows == 3
    assert not leftover.exists()


@pytest.mark.parametrize("needs", [(100, 900), (900, 100)])
def test_the_longest_need_of_several_readers_counts(kept, needs):
    """In whatever order `pipeline.yml` declares them; each of them says how far back it may read."""
    chore = Vacuum(kept.project, "t", kept.pipeline.table("bronze"), timedelta(0), now=lambda: 1000.0)
    opened = SimpleNamespace(metadata=lambda: SimpleNamespace(configuration={}))
    positions = [ReaderPosition("one", since=1000.0 - seconds) for seconds in needs]
    assert chore._retention(opened, positions) == timedelta(seconds=900)
