"""Tables get another name, or another pipeline, where storage and warehouse are on S3: copied, compared, and then removed."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.headwater.metrics.conftest import done, pipeline, write_rows
from tests.unit.headwater.moves.test_moving import (
    another,
    call,
    everything,
    test_a_table_goes_to_another_pipeline,
    test_all_that_belongs_to_it_goes_along,
    test_not_while_an_update_runs,
    test_the_plan_changes_nothing,
    test_there_and_back_again,
)
from tests.unit.headwater.storage.test_imports_over_stores import mark
from tests.unit.headwater.storage.test_killed_repairs import killed_before
from tests.unit.headwater.storage.test_requests import cache

from headwater.checkpoints import table_move
from headwater.checkpoints.flow_identity import former_names, names_file
from headwater.checkpoints.guarded_files import write_guarded
from headwater.checkpoints.table_move import (
    end_journal,
    mark_file,
    mark_old_name,
    moved_to,
    refuse_old_names,
    unfinished_move,
    write_journals,
)
from headwater.delta_log.table_history import table_exists
from headwater.errors import HeadwaterError, LeaseLost
from headwater.event_log.reader import events
from headwater.graph.manifest import FILE_NAME, read_manifest
from headwater.moves import moving, stored_folders
from headwater.moves.move_plan import plan_move
from headwater.moves.move_request import Wish
from headwater.moves.moved_manifest import rewrite_manifests
from headwater.moves.moving import move_table, steps
from headwater.moves.stored_folders import carry_over, contents
from headwater.storage import walking
from headwater.storage.delta_tables import delta_table
from headwater.storage.listing import Listed

__all__ = [
    "cache", "done", "pipeline", "test_a_table_goes_to_another_pipeline", "test_all_that_belongs_to_it_goes_along",
    "test_not_while_an_update_runs", "test_the_plan_changes_nothing", "test_there_and_back_again",
]  # fmt: skip
_NUMBERS = itertools.count()


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"name-{number}/storage"), s3.place("places", f"name-{number}/warehouse")


def ours() -> None:
    """The check of a lease that nobody takes."""


def ids(table):
    """The rows of a table as a reader finds them; None where there is none that can be read."""
    try:
        return sorted(delta_table(table).to_pyarrow_table()["id"].to_pylist())
    except Exception:
        return None


def grown(table):
    """A table of four commits, and a checkpoint in the middle."""
    for number in range(3):
        write_rows(table, 10 + number)
        if number == 1:
            delta_table(table).create_checkpoint()
    return ids(table)


def test_the_plan_says_what_is_copied(done, capsys):
    """How many objects and bytes, before anything is written."""
    _, answer = call(done, capsys, "rename", "silver", "purified")
    copied = [about.size for place in ("silver",) for about in contents(done.table(place)).values()]
    flow = [about.size for about in contents(done.checkpoint("silver").folder).values()]
    assert answer["copied"] == {"files": len(copied) + len(flow), "size": sum(copied) + sum(flow)}


@pytest.mark.parametrize("cleaned", [False, True], ids=["whole log", "cleaned log"])
def test_killed_before_each_write(done, cleaned, monkeypatch):
    """No reader sees a part of the table at either address; the same again goes on from there, and all of it arrives.

    A store removes a thousand objects at once, here one.
    """
    monkeypatch.setattr(walking, "_A_REQUEST", 1)
    table, after = done.table("silver"), done.table("purified")
    rows = grown(table)
    if cleaned:
        for version in range(2):
            (table / "_delta_log" / f"{version:020d}.json").unlink()
    before, killed = everything(table), 0
    while killed_before(1 + killed % 2, lambda: carry_over(table, after, ours)):
        killed += 1
        seen = ids(table), ids(after)
        assert rows in seen
        assert set(map(str, seen)) <= {str(rows), "None"}
        assert killed < 60
    assert killed > 5
    assert everything(after) == before
    assert not contents(table)
    assert not any(name.endswith(".making") for name in contents(after.parent))


def test_a_second_run_records_it_once(done):
    """The first one ended after it had recorded the rename, and before it removed the journal."""
    wish = Wish(done.project, done.project, "silver", "purified", "headwater rename")
    for step in list(steps(plan_move(wish), wish, ours))[:-1]:
        step()
    move_table(wish)
    records = events(done.project.state_folder, event_type="user_action")
    assert [record["details"]["user_action"]["action"] for record in records] == ["RENAME"]


def test_a_journal_that_comes_late(done):
    """A process that stood still in the write of its journal finds that another one has ended the rename: nothing comes back."""
    wish = Wish(done.project, done.project, "silver", "purified", "headwater rename")
    late = plan_move(wish)
    move_table(wish)
    with pytest.raises(LeaseLost):
        write_journals(late.move, late.journals)
    # Nor is the journal of the next rename ended by who still ends the one before.
    again = Wish(done.project, done.project, "purified", "silver", "headwater rename")
    later = plan_move(again)
    write_journals(later.move, later.journals)
    end_journal(late.move, done.project.state_folder)
    assert unfinished_move(done.project.state_folder) == later.move
    move_table(again)
    assert unfinished_move(done.project.state_folder) is None


def test_a_mark_that_comes_late(done):
    """What a process that stood still in the write of a mark leaves does not keep the name from another table later."""
    move_table(Wish(done.project, done.project, "silver", "purified", "headwater rename"))
    flows = done.project.state_folder / "checkpoints" / "purified"
    (flows / ".purified.making").write_text("")
    move_table(Wish(done.project, done.project, "purified", "clean", "headwater rename"))
    move_table(Wish(done.project, done.project, "gold", "purified", "headwater rename"))
    assert done.table("purified").is_dir()


def test_names_that_come_late(done, monkeypatch):
    """A process that stood still in the write of former names does not put back what renames since have changed."""
    state, stood = done.project.state_folder, []
    wish = Wish(done.project, done.project, "silver", "purified", "headwater rename")

    def stands_still(seen, text):
        if seen.file == names_file(state) and not stood:
            stood.append(seen)
            move_table(Wish(done.project, done.project, "gold", "shiny", "headwater rename"))
        write_guarded(seen, text)

    monkeypatch.setattr(moving, "write_guarded", stands_still)
    with pytest.raises(LeaseLost):
        moving._keep_names(plan_move(wish).move, state)
    assert set(former_names(state)) == {"shiny/shiny"}


@pytest.mark.parametrize("step", ["mark", "manifest"])
def test_marks_and_manifests_that_come_late(done, step):
    """Who stood still between the look and the write of one does not overwrite what another operator has written meanwhile."""
    state, wish = done.project.state_folder, Wish(done.project, done.project, "silver", "purified", "rename")
    plan = plan_move(wish)

    def stands_still():
        move_table(wish)
        mark_file(state, "silver").write_text("{}")
        (state / FILE_NAME).write_text("of a later update")

    writes = {
        "mark": lambda: mark_old_name(plan.move, state, stands_still),
        "manifest": lambda: rewrite_manifests(plan.move, wish, stands_still),
    }
    with pytest.raises(LeaseLost, match="Another process"):
        writes[step]()
    assert mark_file(state, "silver").read_text() == "{}"
    assert (state / FILE_NAME).read_text() == "of a later update"


def test_a_mark_that_is_forgotten_late(done, monkeypatch):
    """Who stood still when it was to forget the mark at a name leaves the one of a later rename: the name is still refused."""
    state, stood = done.project.state_folder, []
    move_table(Wish(done.project, done.project, "silver", "purified", "headwater rename"))
    back = Wish(done.project, done.project, "purified", "silver", "headwater rename")
    late, end = plan_move(back), table_move.end_guarded

    def stands_still(seen, by):
        if seen.file == mark_file(state, "silver") and not stood:
            stood.append(seen)
            move_table(back)
            move_table(Wish(done.project, done.project, "silver", "clean", "headwater rename"))
        end(seen, by)

    monkeypatch.setattr(table_move, "end_guarded", stands_still)
    with pytest.raises(LeaseLost):
        moving._keep_names(late.move, state)
    assert moved_to(state, "silver") == ("clean", "orders")
    assert moved_to(state, "purified") == ("silver", "orders")


def test_a_name_that_was_given_away_and_came_back_is_dropped(done, capsys):
    """What the store keeps of the mark there does not make a drop spare the table."""
    for names in (("silver", "purified"), ("purified", "silver")):
        assert call(done, capsys, "rename", *names, "--yes")[0] == 0
    assert call(done, capsys, "drop", "silver", "gold", "--yes")[0] == 0
    assert not contents(done.table("silver"))


def test_killed_moves(done):
    """Killed at any write of the whole verb: nobody else writes meanwhile, and the same command ends it."""
    rows, state = ids(done.table("silver")), done.project.state_folder
    flow = everything(done.checkpoint("silver").folder)
    wish = Wish(done.project, done.project, "silver", "purified", "headwater rename")
    for number in itertools.count(3, 4):
        if not killed_before(number, lambda: move_table(wish)):
            break
        if unfinished_move(state) is not None:
            with pytest.raises(HeadwaterError) as refused, done.project.lease("an update"):
                pass
            assert refused.value.condition == "MOVE_UNFINISHED"
    assert number > 12
    assert ids(done.table("purified")) == rows
    assert everything(done.checkpoint("purified").folder) == flow
    assert not contents(done.table("silver"))
    refuse_old_names(state, {"purified": None})


def test_marks_of_folders_are_nothing(done, capsys):
    """What Hadoop leaves of folders can't be removed: it is in nobody's way, also when the table gets its first name again."""
    mark(done.table("silver") / "_delta_log")
    mark(done.checkpoint("silver").folder / "0" / "sources")
    mark(done.table("purified"))
    rows = ids(done.table("silver"))
    assert call(done, capsys, "rename", "silver", "purified", "--yes")[0] == 0
    assert ids(done.table("purified")) == rows
    assert call(done, capsys, "rename", "purified", "silver", "--yes")[0] == 0
    assert ids(done.table("silver")) == rows
    assert done.checkpoint("silver").read_state() is not None


@pytest.mark.parametrize("when", ["before", "rows", "commits", "first"])
def test_somebody_elses_table(done, when, monkeypatch):
    """One that another pipeline creates at the new address meanwhile: it keeps its rows, or can't be created; ours stays."""
    table, after = done.table("silver"), done.table("purified")
    rows = grown(table)
    created = []

    def theirs() -> None:
        try:
            write_rows(after, 77)
        except Exception:
            return
        created.append(77)

    if when == "before":
        theirs()
    stage = stored_folders._stage

    at = {"rows": 0, "commits": 1, "first": 2}.get(when, -1)
    different = stored_folders._different

    def meanwhile(before, copy, originals, copies):
        if originals and {stage(name) for name in originals} == {at} and not tried:
            tried.append(1)
            theirs()
        return different(before, copy, originals, copies)

    tried: list[int] = []
    monkeypatch.setattr(stored_folders, "_different", meanwhile)
    if when == "before":
        with pytest.raises(FileExistsError):
            carry_over(table, after, ours)
        assert (ids(after), ids(table)) == ([77], rows)
        return
    carry_over(table, after, ours)
    assert tried
    assert not created
    assert ids(after) == rows


def test_somebody_elses_first_commit(done, monkeypatch):
    """It comes at the very last moment: it stands, and our table is where it was."""
    table, after = done.table("gold"), done.table("purified")
    rows, create = ids(table), stored_folders.create_text

    def meanwhile(place, text):
        monkeypatch.undo()
        write_rows(after, 77)
        return create(place, text)

    monkeypatch.setattr(stored_folders, "create_text", meanwhile)
    with pytest.raises(FileExistsError):
        carry_over(table, after, ours)
    assert (ids(after), ids(table)) == ([77], rows)


def test_a_copy_that_is_another(done, monkeypatch):
    """Nothing of the old table is removed, and no reader takes the new one for it."""
    table, after = done.table("silver"), done.table("purified")
    rows = ids(table)
    copied = stored_folders.copy_file

    def wrong(source, target):
        copied(source, target)
        if source.suffix == ".parquet":
            target.write_bytes(b"x" * source.stat().st_size)

    with monkeypatch.context() as patched:
        patched.setattr(stored_folders, "copy_file", wrong)
        with pytest.raises(HeadwaterError, match="not what their originals are"):
            carry_over(table, after, ours)
    assert ids(table) == rows


def test_a_table_with_a_path_of_its_own(done, capsys):
    """Its rows stay where they are: only its checkpoints are copied, and the new name leads to the old address."""
    address = str(done.table("silver"))
    datasets = tuple(
        entry.model_copy(update={"location": address}) if entry.name == "silver" else entry
        for entry in done.manifest.datasets
    )
    done.manifest = done.manifest.model_copy(update={"datasets": datasets})
    done.store_manifest()
    rows = ids(done.table("silver"))
    code, answer = call(done, capsys, "rename", "silver", "purified", "--yes")
    assert (code, answer["copied"]["files"]) == (0, len(contents(done.checkpoint("purified").folder)))
    manifest = read_manifest(done.project.state_folder / FILE_NAME)
    assert manifest is not None
    assert [entry.location for entry in manifest.datasets if entry.name == "purified"] == [address]
    assert ids(done.table("silver")) == rows


def test_a_table_on_a_disk_and_one_on_a_store(done, tmp_path, capsys):
    """A move between them is refused before anything is written."""
    to = another(done)
    object.__setattr__(to, "warehouse", tmp_path / "warehouse")
    with pytest.raises(HeadwaterError, match="different file systems"):
        plan_move(Wish(done.project, to, "silver", "shop.silver", "headwater move"))
    assert table_exists(done.table("silver"))


@pytest.mark.parametrize(("size", "taken"), [(3, True), (4, False)])
def test_which_copies_are_compared(tmp_path, monkeypatch, size, taken):
    """A small one by its content, whatever its tag; a large one, whose tag depends on its parts, by its size alone."""
    monkeypatch.setattr(stored_folders, "_COMPARED", 3)
    for folder, content in (("a", "x"), ("b", "y")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text(content * size)

    def listed(tag, size=size):
        return {"f": Listed(size, 0.0, tag)}

    def different(originals, copies):
        return stored_folders._different(tmp_path / "a", tmp_path / "b", originals, copies) == ["f"]

    assert different(listed("1"), listed("2")) is taken
    assert not different(listed("1"), listed("1"))
    assert different(listed("1"), listed("1", size + 1))
    assert different(listed("1"), {})
