"""Whether an update would find anything: False only where that is certain."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pytest
from tests.unit.headwater.metrics.conftest import write_rows

from headwater.checkpoints.layout import FlowState
from headwater.checkpoints.pending_replacement import PendingReplacement
from headwater.contract.arguments import parse_run_arguments
from headwater.graph.update_plan import Selection
from headwater.storage.walking import remove_tree
from headwater.updates import news
from headwater.updates.news import has_news, news_for


def test_nothing_new(done):
    """After an update that took in everything there is no news."""
    verdict = has_news(done.project)
    assert (verdict.moved, verdict.reasons) == (False, ())
    assert verdict.manifest == done.manifest


@pytest.mark.parametrize(
    ("words", "asked"),
    [([], True), (["--no-skip"], False), (["--full-refresh-all"], False), (["--tables", "gold"], False)],
)
def test_who_is_asked_for_news(done, words: list[str], asked: bool):
    """A plain update alone: one that names tables, or is to run in any case, is not left out because nothing has moved."""
    verdict = news_for(done.project, parse_run_arguments([str(done.project.folder), *words]))
    assert (verdict is not None) is asked


@pytest.mark.parametrize(
    ("left_at", "there", "missed"),
    [(None, False, ()), (0, True, ()), (0, False, ("gone",)), (1, True, ("an older copy",))],
)
def test_a_quarantine_that_is_gone(done, left_at: int | None, there: bool, missed: tuple[str, ...]):
    """It is missed where the flow had one, or a later one; a table with rules that has kept nothing out has none."""
    datasets = tuple(
        entry.model_copy(update={"quarantine": f"{entry.location}_quarantine"})
        if entry.name == "silver"
        else entry
        for entry in done.manifest.datasets
    )
    manifest = done.manifest.model_copy(update={"datasets": datasets})
    (done.project.state_folder / "manifest.json").write_text(manifest.to_json())
    done.checkpoint("silver").update_state(has_quarantine=left_at is not None, quarantine_version=left_at)
    if there:
        write_rows(manifest.quarantine_path(done.project.warehouse, "silver"), 1)
    verdict = has_news(done.project)
    assert (verdict.moved, verdict.reasons) == (
        bool(missed),
        tuple(f"the quarantine of silver is {what}" for what in missed),
    )


def test_never_run(pipeline):
    """A pipeline without a manifest in storage has to run."""
    assert has_news(pipeline.project).moved


def changed_source(done):
    (done.project.folder / "transformations" / "tables.py").write_text("# changed\n")


def new_file(done):
    done.land("b.json")


def new_rows_for_a_stream(done):
    write_rows(done.table("bronze"), 9)


def new_rows_for_a_view(done):
    write_rows(done.table("silver"), 9)


def not_completed(done):
    done.complete("silver", completed=False)


def older_definition(done):
    done.complete("silver", definition_hash="sha256:0")


def pending_reset(done):
    done.complete("silver", pending_epoch=1)


def missing_state(done):
    done.checkpoint("gold").state_file.unlink()


def missing_table(done):
    remove_tree(done.table("gold"))


def table_made_anew(done):
    remove_tree(done.table("gold"))
    write_rows(done.table("gold"), 1, 2)


def table_put_back_from_a_copy(done):
    done.checkpoint("silver").update_state(sink_version=7)


def unknown_table_id(done):
    done.complete("gold", sink_id=None)


def broken_checkpoint(done):
    (done.checkpoint("silver").epoch_folder(0) / "offsets" / "0").write_text("v1")


def lost_checkpoint(done):
    remove_tree(done.checkpoint("bronze").epoch_folder(0))


def damaged_table(done):
    (done.table("gold") / "_delta_log" / f"{0:020d}.json").write_text("{")


def missing_folder(done):
    remove_tree(done.landing)


def forgotten_inputs(done):
    done.complete("gold", input_versions={})


def time_dependent(done):
    flows = tuple(f.model_copy(update={"time_dependent": f.name == "gold"}) for f in done.manifest.flows)
    done.manifest = done.manifest.model_copy(update={"flows": flows})
    done.store_manifest()


CHANGES = [
    *(changed_source, new_file, new_rows_for_a_stream, new_rows_for_a_view, not_completed, older_definition),
    *(pending_reset, missing_state, missing_table, table_made_anew, unknown_table_id, broken_checkpoint),
    *(
        table_put_back_from_a_copy,
        lost_checkpoint,
        damaged_table,
        missing_folder,
        forgotten_inputs,
        time_dependent,
    ),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_in_doubt_there_is_news(done, change):
    """Every change, and everything that can't be known, is a reason to run."""
    change(done)
    verdict = has_news(done.project)
    assert verdict.moved
    assert len(verdict.reasons) == 1


def test_a_view_that_others_have_changed_is_news(done):
    """Rows that came after the view's own refresh are undone by an update, though no source has moved."""
    from deltalake import CommitProperties, write_deltalake

    own = {"userMetadata": json.dumps({"pipeline": done.project.pipeline_id, "flow": "gold"})}
    rows = pa.table({"id": pa.array([1], pa.int64())})
    write_deltalake(str(done.table("gold")), rows, mode="append", commit_properties=CommitProperties(own))
    assert not has_news(done.project).moved
    write_rows(done.table("gold"), 9)
    verdict = has_news(done.project)
    assert verdict.moved
    assert "rows of gold were changed by something else" in verdict.reasons[0]


def test_a_backfill_that_was_killed_is_ended_where_its_table_still_is(done):
    """What it took along is put back by an update; of a table that the pipeline no longer has there is nothing to do."""
    for dataset, moved in (("dropped", False), ("silver", True)):
        with PendingReplacement(dataset, "a", "true", "{}", {}).written_down(done.project.state_folder):
            pass
        assert has_news(done.project).moved is moved


def test_commits_without_data_are_no_news(done):
    """Compaction of a table that the pipeline reads does not start an update."""
    from deltalake import DeltaTable

    write_rows(done.table("silver"), 3)
    done.complete("gold")
    DeltaTable(str(done.table("silver"))).optimize.compact()
    assert not has_news(done.project).moved


def test_done_once_is_done(done):
    """A flow that runs once and has completed is not held against its source."""
    flows = tuple(f.model_copy(update={"once": f.name == "bronze"}) for f in done.manifest.flows)
    done.manifest = done.manifest.model_copy(update={"flows": flows})
    done.store_manifest()
    done.land("b.json")
    assert not has_news(done.project).moved
    done.checkpoint("bronze").write_state(FlowState())
    assert has_news(done.project).moved


def test_decided_quickly_and_without_spark(done):
    """A fresh process imports neither pyspark nor a Kafka client for it, which would take seconds."""
    folder, storage, warehouse = done.project.folder, done.project.storage, done.project.warehouse
    code = (
        "import sys; from headwater.graph.pipeline_project import open_project;"
        "from headwater.updates.news import has_news;"
        f"p = open_project({str(folder)!r}, storage={str(storage)!r}, warehouse={str(warehouse)!r});"
        "assert not has_news(p).moved;"
        "assert not {'pyspark', 'airflow', 'confluent_kafka', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_other_parameters_are_news(done, monkeypatch: pytest.MonkeyPatch):
    """The same definition with other parameters may give other rows, though no source has moved."""
    monkeypatch.setattr(type(done.project), "parameters_hash", lambda _: "other")
    verdict = has_news(done.project)
    assert verdict.reasons == ("the parameters are not those of the last update",)


def test_rows_that_were_read_at_loading_are_news(done, monkeypatch: pytest.MonkeyPatch):
    """Sources that query tables while they are loaded may declare something else now: only a run can tell."""
    read = done.manifest.model_copy(update={"rows_read": True})
    monkeypatch.setattr(news, "read_manifest", lambda _: read)
    assert has_news(done.project).reasons == ("the sources query tables while they are loaded",)


@pytest.mark.parametrize(("failed", "runs"), [(("gold",), True), ((), False)])
def test_an_update_of_what_failed(done, monkeypatch, failed: tuple[str, ...], runs: bool):
    """It runs where the last update left a table undone, or where that is not known; it never looks for anything new."""
    arguments = parse_run_arguments([str(done.project.folder), "--refresh-failed"])
    monkeypatch.setattr(news, "with_failed", lambda *_: Selection(tables=failed))
    monkeypatch.setattr(news, "has_news", None)
    verdict = news_for(done.project, arguments)
    assert (verdict is None) is runs
    assert runs or (verdict.moved, verdict.manifest) == (False, done.manifest)
    (done.project.state_folder / "manifest.json").unlink()
    assert news_for(done.project, arguments) is None
