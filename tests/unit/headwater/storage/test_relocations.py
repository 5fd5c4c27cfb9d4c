"""A pipeline goes from folders to S3 and back with all that belongs to it; killed at any write, it is in one place or in none."""

from __future__ import annotations

import itertools
import json
import shlex
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from tests.unit.headwater.doctor.test_open_epoch import content
from tests.unit.headwater.metrics.conftest import done, pipeline, write_rows
from tests.unit.headwater.quarantine.test_table import TYPES, entry
from tests.unit.headwater.storage.test_imports_over_stores import mark
from tests.unit.headwater.storage.test_killed_repairs import killed_before

from headwater.checkpoints.conditions import NameTaken, PipelineRelocated
from headwater.checkpoints.relocation_note import read_note, relocation_of, write_note
from headwater.commands.command_line import main
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.snapshots import take_snapshot
from headwater.errors import LeaseLost, RefusedForSafety, SourceUnreachable, UsageError
from headwater.event_log.reader import events
from headwater.files.atomic_files import make_folders
from headwater.graph.pipeline_project import open_project
from headwater.moves import relocating
from headwater.moves.relocating import compare, relocate, steps
from headwater.moves.relocation_plan import plan_relocation
from headwater.quarantine.columns import MANAGED
from headwater.storage.delta_tables import append
from headwater.storage.walking import remove_tree
from headwater.updates.news import has_news

__all__ = ["done", "pipeline"]
_NUMBERS = itertools.count()
COMMAND = "headwater relocate orders"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def target(done, s3):
    """The same pipeline with roots on S3."""
    number = next(_NUMBERS)
    return opened(
        done, s3.place("places", f"to-{number}/storage"), s3.place("places", f"to-{number}/warehouse")
    )


def opened(done, storage, warehouse):
    return open_project(done.project.folder, storage=storage, warehouse=warehouse)


def whole(project):
    """What has to be the same at both places."""
    tables = {name: content(project.warehouse / "shop" / name) for name in ("bronze", "silver", "gold")}
    state = content(project.state_folder)
    kept = ("checkpoints/", "snapshots/", "manifest.json")
    return tables, {
        name: data for name, data in state.items() if name.startswith(kept) and not name.endswith(".crc")
    }


def runs(project):
    """Whether an update may begin there."""
    try:
        with project.lease("test"):
            return True
    except PipelineRelocated:
        return False


def test_there_and_back(done, target, tmp_path, capsys):
    """The plan changes nothing; then all is there, no flow has news, the log goes on, and the old place is closed; and back again."""
    folder = done.checkpoint("silver").epoch_folder(0)
    (folder / "metadata").write_text('{"id":"q"}')
    (folder / "offsets" / ".9.crc").write_bytes(b"left over")
    take_snapshot(done.project.state_folder, done.checkpoint("silver"), reason="test")
    before = whole(done.project)
    roots = [f"--storage={done.project.storage}", f"--warehouse={done.project.warehouse}"]
    to = [f"--to-storage={target.storage}", f"--to-warehouse={target.warehouse}"]
    words = ["relocate", str(done.project.folder), *roots, *to, "--json"]
    assert main(words) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["state"] == "PLANNED"
    assert len(planned["folders"]) == 4
    assert not target.storage.exists()
    assert main([*words, "--yes"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "COMPLETED"
    assert whole(done.project) == whole(target) == before
    assert (runs(done.project), runs(target)) == (False, True)
    assert not has_news(target).moved
    assert not FlowCase(target, done.manifest, done.flow("silver")).damages
    (record,) = events(target.state_folder, event_type="user_action")
    assert record["details"]["user_action"]["action"] == "RELOCATE"
    assert not target.state_folder.joinpath("checkpoints/silver/silver/0/offsets/.9.crc").exists()

    mark(target.warehouse / "shop" / "gold")
    mark(target.state_folder / "checkpoints" / "silver" / "silver" / "0" / "sources")
    back = opened(done, tmp_path / "back", tmp_path / "tables")
    relocate(target, back, COMMAND)
    assert whole(back) == before
    assert (runs(target), runs(back)) == (False, True)
    assert not has_news(back).moved
    assert main([*words, "--yes"]) == 3
    assert "PIPELINE_RELOCATED" in capsys.readouterr().err


def test_killed_before_each_write(done, target):
    """Never may both places be written to; until the end the old one has everything, and the same command ends it."""
    before = whole(done.project)
    ended = 0
    for number in itertools.count():
        if not killed_before(number, lambda: relocate(done.project, target, COMMAND)):
            break
        if not runs(done.project) and runs(target):
            break  # killed after its last step
        if relocation_of(target.state_folder) is not None:
            assert not runs(target)
        assert whole(done.project) == before
        ended += 1
    assert ended >= 15
    assert whole(target) == before
    assert (runs(done.project), runs(target)) == (False, True)


def test_between_steps(done, target):
    """Stopped before each step, at most one place may be written to, and the same command goes on from there."""
    count = len(list(steps(plan_relocation(done.project, target, COMMAND), done.project, target)))
    for number in range(1, count):
        plan = plan_relocation(done.project, target, COMMAND)
        every = list(steps(plan, done.project, target))
        for step in every[:-1][:number]:
            step()
        assert not runs(target)
        assert runs(done.project) == (number < len(every) - 1)
    relocate(done.project, target, COMMAND)
    assert whole(target) == whole(done.project)
    assert (runs(done.project), runs(target)) == (False, True)


def test_one_that_stood_still_copies_nothing_more(done, target, monkeypatch):
    """Another process may have ended the relocation, and an update may write at the new place: what is late is not copied over it."""
    plan = plan_relocation(done.project, target, COMMAND)
    count = itertools.count()

    def lost():
        if next(count) == 3:
            raise LeaseLost("taken", remedy="none")

    with pytest.raises(LeaseLost, match="taken"):
        _ = [step() for step in steps(plan, done.project, target, lost)]
    copied = [file for tree in plan.trees for file in content(tree.target) if "lease" not in file]
    assert len(copied) < sum(tree.files for tree in plan.trees)
    relocate(done.project, target, COMMAND)
    assert whole(target) == whole(done.project)


@pytest.mark.parametrize("done_before", [1, 2, 6, 9])
def test_a_second_run_records_it_once(done, target, done_before):
    """Wherever the first one ended: before it recorded the relocation, or after it."""
    every = steps(plan_relocation(done.project, target, COMMAND), done.project, target)
    for step in itertools.islice(every, done_before):
        step()
    relocate(done.project, target, COMMAND)
    records = events(target.state_folder, event_type="user_action")
    assert [record["details"]["user_action"]["action"] for record in records] == ["RELOCATE"]


def test_what_the_old_place_took_in_meanwhile(done, target):
    """After a try that died, an update at the old place is allowed: what it wrote goes along, what it removed does not."""
    plan = plan_relocation(done.project, target, COMMAND)
    for step in itertools.islice(steps(plan, done.project, target), 6):
        step()
    folder = done.checkpoint("silver").epoch_folder(0)
    (folder / "commits" / "1").write_text("v1\n{}")
    (folder / "offsets" / "0").rename(folder / "offsets" / "1")
    assert plan_relocation(done.project, target, COMMAND).resumed
    relocate(done.project, target, COMMAND)
    assert whole(target) == whole(done.project)


@pytest.mark.parametrize("verb", [("drop", "gold"), ("rename", "gold", "shiny")], ids=lambda verb: verb[0])
def test_a_table_that_has_gone_between_two_tries(done, target, verb):
    """Its copy would be a table of before at the new place: rows would be added to it, or read as held. Once it is removed, all goes on."""
    for step in itertools.islice(
        steps(plan_relocation(done.project, target, COMMAND), done.project, target), 6
    ):
        step()
    roots = [f"--storage={done.project.storage}", f"--warehouse={done.project.warehouse}"]
    name, *words = verb
    assert main([name, str(done.project.folder), *words, "--yes", *roots]) == 0
    copy = target.warehouse / "shop" / "gold"
    with pytest.raises(NameTaken, match="earlier try") as refused:
        relocate(done.project, target, COMMAND)
    assert (refused.value.where, runs(done.project)) == (str(copy), True)
    assert f": aws s3 rm --recursive {copy}/; then run the same" in refused.value.remedy
    remove_tree(copy)
    relocate(done.project, target, COMMAND)
    assert whole(target) == whole(done.project)
    assert (runs(done.project), runs(target)) == (False, True)


def test_all_that_an_earlier_try_left_is_removed_at_once(done, tmp_path):
    """On a disk, of a table with a quarantine: one command frees the place, and the relocation goes on."""
    schema = pa.schema([(name, TYPES.get(name, pa.string())) for name in MANAGED])
    append(done.table("gold_quarantine"), pa.Table.from_pylist([entry(1, "a")], schema))
    there = opened(done, tmp_path / "to", tmp_path / "rows")
    for step in itertools.islice(
        steps(plan_relocation(done.project, there, COMMAND), done.project, there), 9
    ):
        step()
    roots = [f"--storage={done.project.storage}", f"--warehouse={done.project.warehouse}"]
    assert main(["rename", str(done.project.folder), "gold", "shiny", "--yes", *roots]) == 0
    with pytest.raises(NameTaken, match="earlier try") as refused:
        relocate(done.project, there, COMMAND)
    command = refused.value.remedy.split("there: ")[1].split(";")[0]
    assert command.count("rm -rf") == 2
    for removal in command.split(" && "):
        remove_tree(Path(shlex.split(removal)[-1]))
    relocate(done.project, there, COMMAND)
    assert runs(there)


def test_killed_in_its_first_writes(done, tmp_path):
    """Half a note, or half a record of its folders, is in nobody's way: the same again goes on. Another file is somebody's."""
    there = opened(done, tmp_path / "to", tmp_path / "rows")
    half = (
        there.state_folder / ".relocation.json.0123456789ab",
        there.state_folder / "system" / ".folders.json.0123456789ab",
    )
    for file in half:
        make_folders(file.parent)
        file.write_text("{")
    theirs = there.state_folder / ".notes.json.0123456789ab"
    theirs.write_text("{")
    with pytest.raises(NameTaken) as refused:
        relocate(done.project, there, COMMAND)
    assert refused.value.where == str(theirs)
    theirs.unlink()
    relocate(done.project, there, COMMAND)
    assert runs(there)


def test_a_table_whose_log_can_not_be_read(done, target):
    """As a copy that was interrupted leaves one: it is said which table, and nothing is written."""
    for value in (3, 4):
        write_rows(done.table("gold"), value)
    (done.table("gold") / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(SourceUnreachable) as refused:
        relocate(done.project, target, COMMAND)
    assert refused.value.where == str(done.table("gold"))
    assert relocation_of(target.state_folder) is None


def test_folders_of_a_flow_that_has_gone_between_two_tries(done, tmp_path):
    """On a disk they would be left empty, and taken for a checkpoint of a flow that has read nothing."""
    there = opened(done, tmp_path / "to", done.project.warehouse)
    for step in itertools.islice(
        steps(plan_relocation(done.project, there, COMMAND), done.project, there), 3
    ):
        step()
    assert (there.state_folder / "checkpoints" / "silver").is_dir()
    roots = [f"--storage={done.project.storage}", f"--warehouse={done.project.warehouse}"]
    assert main(["drop", str(done.project.folder), "silver", "gold", "--yes", *roots]) == 0
    relocate(done.project, there, COMMAND)
    assert sorted(path.name for path in (there.state_folder / "checkpoints").iterdir()) == ["bronze"]


def test_what_is_refused(done, target, tmp_path):
    """A place that is taken, one inside the other, the same storage, a damaged file, a copy that is another: nothing counts as moved."""
    inside = opened(done, done.project.storage / "x", target.warehouse)
    same = opened(done, done.project.storage, target.warehouse)
    for wrong in (inside, same):
        with pytest.raises(UsageError):
            plan_relocation(done.project, wrong, COMMAND)
    stranger = target.warehouse / "shop" / "gold" / "x"
    stranger.write_text("x")
    with pytest.raises(NameTaken):
        relocate(done.project, target, COMMAND)
    stranger.unlink()
    checksum = done.checkpoint("silver").epoch_folder(0) / "offsets" / ".0.crc"
    checksum.write_bytes(b"crc\0\0\0\2\0\0\0\0\0")
    with pytest.raises(RefusedForSafety, match="checksum"):
        relocate(done.project, target, COMMAND)
    checksum.unlink()
    plan = plan_relocation(done.project, target, COMMAND)
    for step in itertools.islice(steps(plan, done.project, target), 6):
        step()
    flow = target.state_folder / "checkpoints" / "silver" / "silver" / "flow.json"
    flow.write_text(flow.read_text().replace("true", "True", 1))
    own = plan.trees[-1]
    with pytest.raises(RefusedForSafety, match=r"flow\.json"):
        compare(own, done.project.state_folder)
    assert (runs(done.project), runs(target)) == (True, False)


def test_only_the_storage(done, target):
    """Tables may stay where they are."""
    there = opened(done, target.storage, done.project.warehouse)
    relocate(done.project, there, COMMAND)
    assert whole(there) == whole(done.project)
    assert not has_news(there).moved


def test_a_note_that_comes_late(done, target):
    """A process that stood still in the write of its note finds that another one has ended the relocation: nothing comes back."""
    late = plan_relocation(done.project, target, COMMAND)
    relocate(done.project, target, COMMAND)
    write_rows(target.warehouse / "shop" / "silver", 7)
    now = whole(target)
    with pytest.raises(LeaseLost):
        write_note(late.new, late.note)
    assert runs(target)
    assert whole(target) == now


@pytest.mark.parametrize("same", [True, False], ids=["killed before its last step", "of another process"])
def test_an_old_place_that_is_closed_is_not_copied_again(done, target, same):
    """The new place may have got rows since: all that is left is opening it."""
    plan = plan_relocation(done.project, target, COMMAND)
    for step in list(steps(plan, done.project, target))[:-1]:
        step()
    if not same:
        write_note(read_note(target.state_folder), replace(plan.note, relocation_id="of another"))
    write_rows(target.warehouse / "shop" / "silver", 7)
    now = whole(target)
    assert "open it" in str(plan_relocation(done.project, target, COMMAND))
    relocate(done.project, target, COMMAND)
    assert whole(target) == now
    assert (runs(done.project), runs(target)) == (False, True)


def test_an_old_place_that_was_left_for_another_one(done, target, tmp_path):
    """A relocation that was begun and not ended does not go on from a place that another one has closed."""
    plan = plan_relocation(done.project, target, COMMAND)
    write_note(plan.new, plan.note)
    relocate(done.project, opened(done, tmp_path / "to", tmp_path / "tables"), COMMAND)
    with pytest.raises(PipelineRelocated):
        relocate(done.project, target, COMMAND)


@pytest.mark.parametrize("on_a_disk", [True, False])
def test_a_place_at_which_one_was_given_up(done, target, tmp_path, on_a_disk):
    """Both who runs the pipeline there and who takes it there later hear which command frees the place; then it is free."""
    half = opened(done, tmp_path / "half", tmp_path / "half tables") if on_a_disk else target
    for step in list(steps(plan_relocation(done.project, half, COMMAND), done.project, half))[:4]:
        step()
    other = opened(done, tmp_path / "to", tmp_path / "tables")
    relocate(done.project, other, COMMAND)
    copied = [half.warehouse / "shop" / name for name in ("bronze", "silver", "gold")]
    command = "rm -rf" if on_a_disk else "aws s3 rm --recursive"
    with pytest.raises(PipelineRelocated) as refused, half.lease("an update"):
        pass
    with pytest.raises(NameTaken, match="on its way here") as taken:
        relocate(other, half, COMMAND)
    for error in (refused.value, taken.value):
        commands = error.remedy.split(": ")[-1].split("; then")[0].split(" && ")
        assert all(words.startswith(command) for words in commands)
        named = [shlex.split(words)[-1].rstrip("/") for words in commands]
        assert named == [str(folder) for folder in (*copied, half.state_folder)]
    for folder in (*copied, half.state_folder):
        remove_tree(folder, ignore_errors=True)
    relocate(other, half, COMMAND)
    assert (runs(other), runs(half)) == (False, True)


@pytest.mark.parametrize(
    ("agrees", "copied", "refused"), [(True, True, False), (False, True, True), (False, False, False)]
)
def test_files_and_their_checksums(tmp_path, monkeypatch, agrees, copied, refused):
    """Only a file that is taken along, and is not what its checksum says, stops the move."""
    for name in ("a", ".a.crc", "b"):
        (tmp_path / name).touch()
    monkeypatch.setattr(relocating, "agrees", lambda _: agrees)
    monkeypatch.setattr(relocating, "is_copied", lambda file, *_: copied)
    with pytest.raises(RefusedForSafety, match="checksum") if refused else nullcontext():
        relocating._check_checksums(SimpleNamespace(source=tmp_path), tmp_path)
