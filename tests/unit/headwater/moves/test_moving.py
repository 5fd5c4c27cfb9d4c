"""A table gets another name, or another pipeline, with all that belongs to it; a crash anywhere is ended by a second run."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count

import pytest
from tests.unit.headwater.metrics.conftest import write_rows

from headwater.checkpoints.flow_identity import FlowIdentity, flow_identity
from headwater.checkpoints.relocation_note import Relocation, read_note, write_note
from headwater.checkpoints.table_move import TableMove, refuse_old_names, unfinished_move
from headwater.commands.command_line import main
from headwater.delta_log.table_history import table_id
from headwater.errors import HeadwaterError
from headwater.event_log.reader import events, last_batches
from headwater.graph.manifest import FILE_NAME, read_manifest
from headwater.graph.pipeline_project import open_project
from headwater.moves import moving
from headwater.moves.move_plan import plan_move
from headwater.moves.move_request import Wish
from headwater.storage.place import Place, parts_below
from headwater.storage.walking import contents_below, remove_tree


class Killed(BaseException):
    """The process died here; nobody catches it."""


def call(done, capsys, verb: str, *arguments: str):
    """What a verb answers: its exit code, and the JSON of the last line."""
    roots = [f"--storage={done.project.storage}", f"--warehouse={done.project.warehouse}"]
    code = main([verb, str(done.project.folder), *arguments, *roots, "--json"])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


def another(done):
    """A second pipeline on the same roots, which has not run yet."""
    folder = done.project.folder.with_name("other")
    (folder / "transformations").mkdir(parents=True)
    (folder / "pipeline.yml").write_text("name: other\nschema: mart\n")
    return open_project(
        folder, storage=done.project.storage, warehouse=done.project.warehouse, environment={}
    )


def everything(root: Place) -> dict[str, bytes]:
    """Each file below a folder with what is in it; but for the lease, which counts, and the probe of a store."""
    files = (file for file, _ in contents_below(root) if ".lease" not in file.name)
    return {"/".join(parts_below(file, root)): file.read_bytes() for file in files}


def test_the_plan_changes_nothing(done, capsys):
    """Without --yes all is as it was, and every folder that would go is named."""
    before = everything(done.project.storage)
    code, answer = call(done, capsys, "rename", "silver", "purified")
    assert (code, answer["state"], answer["flows"]) == (0, "PLANNED", {"silver": "purified"})
    assert [str(done.table("silver")), str(done.table("purified"))] in answer["folders"]
    assert everything(done.project.storage) == before


def test_all_that_belongs_to_it_goes_along(done, capsys):
    """Table, checkpoint and names: nothing is copied or lost, a copy of the checkpoint is kept, the event log says so."""
    state, silver = done.project.state_folder, done.checkpoint("silver")
    identity, files = table_id(done.table("silver")), everything(silver.folder)
    recorded = {key: batch for key, batch in last_batches(state).items() if key[0] == "silver"}
    code, answer = call(done, capsys, "rename", "silver", "purified", "--yes")
    assert (code, answer["state"]) == (0, "COMPLETED")
    assert table_id(done.table("purified")) == identity
    assert not done.table("silver").exists()
    assert everything(done.checkpoint("purified").folder) == files
    assert flow_identity(state, "shop", "purified", "purified") == FlowIdentity(
        done.project.pipeline_id, "silver"
    )
    assert list((state / "snapshots" / "purified" / "purified").glob("*/snapshot.json"))
    (record,) = events(state, event_type="user_action")
    assert (record["details"]["user_action"]["action"], record["origin"]["dataset_name"]) == (
        "RENAME",
        "purified",
    )
    after = last_batches(state)
    assert {epoch: after["purified", epoch] for _, epoch in recorded} == {
        e: b for (_, e), b in recorded.items()
    }
    manifest = read_manifest(state / FILE_NAME)
    assert manifest is not None
    assert [entry.name for entry in manifest.tables] == ["bronze", "purified", "gold"]
    assert call(done, capsys, "status")[0] == 0


def test_there_and_back_again(done, capsys):
    """The names of commits are those of the first start however often the table is renamed, and go when they are its own."""
    state = done.project.state_folder
    for old, new in (("silver", "purified"), ("purified", "extra.clean"), ("extra.clean", "silver")):
        assert call(done, capsys, "rename", old, new, "--yes")[0] == 0
        assert flow_identity(state, done.project.pipeline_id, new, new).flow == "silver"
    assert json.loads((state / "system" / "flow_names.json").read_text()) == {}
    assert done.table("silver").is_dir()
    assert done.checkpoint("silver").read_state() is not None
    refuse_old_names(state, {"silver": None})


def test_a_table_goes_to_another_pipeline(done, capsys):
    """Its rows stay at their full name; its flows are those of the other pipeline, which knows how far they were recorded."""
    to = another(done)
    identity, state = table_id(done.table("silver")), done.project.state_folder
    recorded = {epoch: batch for (flow, epoch), batch in last_batches(state).items() if flow == "silver"}
    code, answer = call(done, capsys, "move", "silver", "--to", str(to.folder), "--yes")
    assert (code, answer["to"]) == (0, {"pipeline": "other", "dataset": "shop.silver"})
    assert table_id(done.table("silver")) == identity
    assert (to.state_folder / "checkpoints" / "shop.silver" / "shop.silver" / "flow.json").exists()
    names = flow_identity(to.state_folder, "other", "shop.silver", "shop.silver")
    assert names == FlowIdentity(done.project.pipeline_id, "silver")
    known = last_batches(to.state_folder)
    assert {epoch: known["shop.silver", epoch] for epoch in recorded} == recorded
    for folder in (state, to.state_folder):
        (record,) = events(folder, event_type="user_action")
        assert record["details"]["user_action"]["action"] == "MOVE"


def test_sources_that_declare_the_old_name_are_refused(done, capsys):
    """An update would fill the old name again; for a new table the old one is forgotten by a drop, which removes nothing else.

    The same command, as after a kill behind its last step, says that it is done.
    """
    state = done.project.state_folder
    assert call(done, capsys, "rename", "silver", "purified", "--yes")[0] == 0
    code, answer = call(done, capsys, "rename", "silver", "purified", "--yes")
    assert (code, answer["error"]["condition"]) == (2, "USAGE")
    assert "'silver' is 'purified' of the pipeline" in answer["error"]["message"]
    with pytest.raises(HeadwaterError) as refused:
        refuse_old_names(state, {"bronze": None, "silver": "main.py:9"})
    assert (refused.value.condition, refused.value.exit_code) == ("TABLE_MOVED", 3)
    assert "'purified'" in refused.value.remedy
    assert call(done, capsys, "drop", "silver", "--yes")[0] == 0
    refuse_old_names(state, {"silver": None})
    assert done.table("purified").is_dir()
    assert done.checkpoint("purified").read_state() is not None


@pytest.mark.parametrize(
    ("arguments", "condition", "code"),
    [
        (("silver", "bronze"), "NAME_TAKEN", 3),
        (("silver", "other-name"), "INVALID_NAME", 2),
        (("silver", "silver"), "USAGE", 2),
        (("platinum", "gold2"), "UNKNOWN_DATASET", 2),
    ],
)
def test_what_can_not_be_is_refused(done, capsys, arguments, condition, code):
    """Names that are taken, are none, or are not there; nothing is changed."""
    before = everything(done.project.storage)
    answered, answer = call(done, capsys, "rename", *arguments, "--yes")
    assert (answered, answer["error"]["condition"]) == (code, condition)
    assert everything(done.project.storage) == before


def test_a_repair_of_the_old_name(done, capsys):
    """Sources that still declare it know its flow: an epoch would be opened there, and the name be taken; it hears of the new one."""
    assert call(done, capsys, "rename", "silver", "purified", "--yes")[0] == 0
    (done.project.folder / FILE_NAME).write_text(done.manifest.to_json())
    before = everything(done.project.storage)
    for verb in (
        ("repair", "silver", "--action=new-epoch", "--from-start", "--yes"),
        ("repair", "silver", "--action=rewind", "--yes"),
    ):
        code, answer = call(done, capsys, *verb)
        assert (code, answer["error"]["condition"]) == (3, "TABLE_MOVED")
        assert "'purified'" in answer["error"]["remedy"]
    roots = [f"--storage={done.project.storage}", f"--warehouse={done.project.warehouse}", "--json"]
    words = ["discard", str(done.project.folder), "silver", "--all", "--reason=late"]
    assert main(["quarantine", *words, *roots]) == 3
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["error"]["condition"] == "TABLE_MOVED"
    assert everything(done.project.storage) == before


def test_a_table_that_was_dropped(done, capsys):
    """A rename and a move of nothing are refused, with or without a record of the drop; no mark is left at its name."""
    to = another(done)
    assert call(done, capsys, "drop", "gold", "--yes")[0] == 0
    for folder in (done.table("bronze"), done.checkpoint("bronze").folder.parent):
        remove_tree(folder)
    before = everything(done.project.storage)
    for table, why in (("gold", "was dropped"), ("bronze", "has neither")):
        for verb in (("rename", table, "shiny"), ("move", table, "--to", str(to.folder))):
            for confirmed in ((), ("--yes",)):
                code, answer = call(done, capsys, *verb, *confirmed)
                assert (code, answer["error"]["condition"]) == (2, "UNKNOWN_DATASET")
                assert why in answer["error"]["message"]
    assert everything(done.project.storage) == before


def test_not_while_an_update_runs(done, capsys):
    """The leases of both pipelines are respected."""
    to = another(done)
    with done.project.lease("somebody"):
        assert call(done, capsys, "rename", "silver", "purified", "--yes")[0] == 3
        assert call(done, capsys, "move", "silver", "--to", str(to.folder), "--yes")[0] == 3
    with to.lease("somebody"):
        assert call(done, capsys, "move", "silver", "--to", str(to.folder), "--yes")[0] == 3
    assert done.table("silver").is_dir()


@pytest.mark.parametrize("verb", ["rename", "move"])
def test_a_crash_between_any_two_steps_is_ended_by_a_second_run(done, capsys, monkeypatch, verb):
    """Killed after each step: nobody else writes meanwhile, and the same command ends it; the end is the same each time."""
    to = another(done)
    arguments = ["silver", "purified"] if verb == "rename" else ["silver", "--to", str(to.folder)]
    target = done.project if verb == "rename" else to
    back = Wish(target, done.project, "purified" if verb == "rename" else "shop.silver", "silver", "back")
    complete = moving.steps
    name = "purified" if verb == "rename" else "shop.silver"
    for killed_after in count():  # pragma: no branch
        left = killed_after

        def until(plan, wish, check):
            nonlocal left
            for step in complete(plan, wish, check):
                if left == 0:
                    raise Killed
                left -= 1
                yield step

        monkeypatch.setattr(moving, "steps", until)
        try:
            call(done, capsys, verb, *arguments, "--yes")
        except Killed:
            pass
        else:
            assert killed_after >= 9
            return
        begun = unfinished_move(target.state_folder)
        if begun is not None:
            with pytest.raises(HeadwaterError) as refused, target.lease("an update"):
                pass
            assert refused.value.condition == "MOVE_UNFINISHED"
        monkeypatch.setattr(moving, "steps", complete)
        assert call(done, capsys, verb, *arguments, "--yes")[0] == 0
        assert unfinished_move(target.state_folder) is unfinished_move(done.project.state_folder) is None
        folder = target.state_folder / "checkpoints" / name / name
        assert (folder / "flow.json").exists()
        assert not done.checkpoint("silver").folder.exists()
        assert done.table("silver").is_dir() == (verb == "move")
        moving.move_table(back)
        assert done.checkpoint("silver").read_state() is not None


@pytest.mark.parametrize(
    "arguments", [("rename", "gold", "shiny"), ("rename", "silver", "clean"), ("move", "silver")]
)
def test_another_move_does_not_take_the_place_of_a_killed_one(done, capsys, arguments):
    """Its journal is all that knows where the rest of its table is: the other one is refused, as a plan too, with what ends the first."""
    begun = Wish(done.project, done.project, "silver", "purified", "headwater rename orders silver purified")
    for step in list(moving.steps(plan_move(begun), begun, lambda: None))[:4]:
        step()
    to = ("--to", str(another(done).folder)) if arguments[0] == "move" else ()
    for confirmed in ((), ("--yes",)):
        code, answer = call(done, capsys, *arguments, *to, *confirmed)
        assert (code, answer["error"]["condition"]) == (3, "MOVE_UNFINISHED")
        assert "headwater rename orders silver purified --yes" in answer["error"]["remedy"]
    renamed_checkout = replace(begun, command="headwater rename elsewhere silver purified")
    assert moving.move_table(renamed_checkout).resumed
    assert unfinished_move(done.project.state_folder) is None


@pytest.mark.parametrize("left", [True, False])
def test_a_pipeline_on_its_way_to_other_roots(done, capsys, left):
    """What is renamed at its old place, or beside copies that are being made, would be in one of two places only."""
    roots = ("s", "w", "t", "x")
    write_note(
        read_note(done.project.state_folder), Relocation("id", *roots, "headwater relocate", left=left)
    )
    code, answer = call(done, capsys, "rename", "silver", "purified", "--yes")
    assert (code, answer["error"]["condition"]) == (3, "PIPELINE_RELOCATED")
    assert done.table("silver").is_dir()


@pytest.mark.parametrize("steps_done", range(4))
def test_a_move_is_written_down_in_both_pipelines_before_a_folder_goes(done, steps_done):
    """Killed between its two journals and then again: the pipeline that the table leaves does not run in between."""
    to = another(done)
    wish = Wish(done.project, to, "silver", "silver", "headwater move")
    first = plan_move(wish)
    moving.write_journals(first.move, first.journals[:1])
    done.complete("silver", definition_hash="of an update that nothing kept from running")
    plan = plan_move(wish)
    assert not plan.resumed
    for step in list(moving.steps(plan, wish, lambda: None))[: 2 + steps_done]:
        step()
    assert [unfinished_move(state) for state in wish.states] == [plan.move] * 2
    assert moving.move_table(wish).move == plan.move
    assert [unfinished_move(state) for state in wish.states] == [None] * 2
    assert not done.checkpoint("silver").folder.exists()


def relocated(done, capsys):
    """Another command in the pipeline that the table leaves: it gets other roots."""
    to = done.project.folder.with_name("elsewhere")
    return call(done, capsys, "relocate", f"--to-storage={to}", f"--to-warehouse={to}-tables", "--yes")[0]


@pytest.mark.parametrize("ended", [False, True], ids=["before the source's journal", "before its last step"])
def test_a_target_that_a_killed_move_has_closed(done, capsys, ended):
    """The source went on meanwhile: the same command opens the target again, also where it is refused, and calls no other table moved."""
    to, words = another(done), ("move", "gold", "--to", str(done.project.folder.with_name("other")), "--yes")
    wish = Wish(done.project, to, "gold", "shop.gold", "headwater move orders gold --to other")
    plan = plan_move(wish)
    if ended:
        for step in list(moving.steps(plan, wish, lambda: None))[:-1]:
            step()
        assert relocated(done, capsys) == 0
        expected = "PIPELINE_RELOCATED"
    else:
        moving.write_journals(plan.move, plan.journals[:1])
        assert call(done, capsys, "rename", "gold", "shiny", "--yes")[0] == 0
        expected = "USAGE"
    before = everything(done.project.state_folder)
    with pytest.raises(HeadwaterError, match="half-way"), to.lease("an update"):
        pass
    code, answer = call(done, capsys, *words[:-1])
    assert (answer["error"]["condition"], unfinished_move(to.state_folder)) == (expected, plan.move)
    code, answer = call(done, capsys, *words)
    assert (code != 0, answer["error"]["condition"]) == (True, expected)
    assert everything(done.project.state_folder) == before
    with to.lease("an update"):
        assert bool(events(to.state_folder, event_type="user_action")) == ended


def test_only_the_target_is_opened_where_all_has_gone(done, capsys):
    """The source may have filled a new table of the old name before the move is run again: that one stays."""
    to = another(done)
    wish = Wish(done.project, to, "silver", "shop.silver", "headwater move orders silver --to other")
    for step in list(moving.steps(plan_move(wish), wish, lambda: None))[:-1]:
        step()
    assert call(done, capsys, "drop", "silver", "--yes")[0] == 0
    done.complete("silver")
    assert moving.move_table(wish).resumed
    assert unfinished_move(to.state_folder) is None
    refuse_old_names(done.project.state_folder, {"silver": None})
    assert done.checkpoint("silver").read_state() is not None


def test_a_place_that_another_pipeline_has_taken_meanwhile(done, capsys):
    """It knows nothing of this one's journal: its table stays, the refusal says what to do, and then the same command ends the rename."""
    wish = Wish(done.project, done.project, "silver", "purified", "headwater rename orders silver purified")
    plan = plan_move(wish)
    moving.write_journals(plan.move, plan.journals)
    write_rows(done.table("purified"), 7)
    code, answer = call(done, capsys, "rename", "silver", "purified", "--yes")
    assert (code, answer["error"]["condition"]) == (3, "NAME_TAKEN")
    assert answer["error"]["where"] == str(done.table("purified"))
    assert not answer["error"]["transient"]
    done.table("purified").rename(done.table("theirs"))
    assert call(done, capsys, "rename", "silver", "purified", "--yes")[0] == 0
    assert unfinished_move(done.project.state_folder) is None


@pytest.mark.parametrize("place", ["purified", "purified_quarantine"])
def test_what_lies_at_the_new_name_of_a_table_that_was_dropped(done, capsys, place):
    """Another pipeline's table, or the rows that its rules kept out, would become this one's, and a drop would take them away."""
    write_rows(done.table(place), 7)
    remove_tree(done.table("silver"))
    code, answer = call(done, capsys, "rename", "silver", "purified", "--yes")
    assert (code, answer["error"]["condition"]) == (3, "NAME_TAKEN")
    assert answer["error"]["where"] == str(done.table(place))
    assert done.checkpoint("silver").read_state() is not None


def test_a_journal_says_all_that_is_needed(done):
    """What is written down is what was planned."""
    move = plan_move(Wish(done.project, done.project, "silver", "purified", "it")).move
    assert TableMove.of(json.loads(json.dumps(move.as_dict()))) == move


@pytest.mark.parametrize("lost", [True, False])
def test_a_file_that_is_gone_with_the_lease(done, capsys, monkeypatch, lost):
    """Another process may have taken it away: that is said, and not that there is no room."""

    def gone(*_: object):
        def step():
            if lost:
                (done.project.state_folder / "update.lease").unlink()
            raise FileNotFoundError(2, "No such file", "silver")

        yield step

    monkeypatch.setattr(moving, "steps", gone)
    code, answer = call(done, capsys, "rename", "silver", "purified", "--yes")
    assert answer["error"]["condition"] == ("LEASE_LOST" if lost else "STORAGE_FAILED")
    assert code == (3 if lost else 1)


def test_a_name_that_is_almost_a_tables(done, capsys):
    """It is answered with that one; another name with where to look."""
    assert call(done, capsys, "rename", "silvr", "x")[1]["error"]["remedy"] == "Did you mean 'silver'?"
    assert "lists what storage has" in call(done, capsys, "rename", "platinum", "x")[1]["error"]["remedy"]
