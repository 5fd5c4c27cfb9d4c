"""The rows that a plan says come again are those that the table has, whichever epoch wrote them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake
from tests.unit.headwater.metrics.conftest import Pipeline, delta_offset, write_checkpoint

from headwater.commands.command_line import main
from headwater.doctor import reprocessed_rows as module
from headwater.event_log.details import FlowStatus, flow_progress
from headwater.event_log.writer import EventLogWriter


def batch(done: Pipeline, number: int, rows: int, *, epoch: int = 0) -> None:
    """A batch of silver as an update leaves it: position, commit, record."""
    checkpoint = done.checkpoint("silver")
    checkpoint.epoch_folder(epoch).mkdir(parents=True, exist_ok=True)
    (checkpoint.epoch_folder(epoch) / "metadata").write_text(json.dumps({"id": f"query-{epoch}"}))
    write_checkpoint(checkpoint.epoch_folder(epoch), number, [delta_offset(done.table("bronze"), number + 1)])
    metadata = {"pipeline": "orders", "flow": "silver", "epoch": epoch}
    write_deltalake(
        str(done.table("silver")),
        pa.table({"id": pa.array(range(rows), pa.int64())}),
        mode="append",
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": json.dumps(metadata)},
            app_transactions=[Transaction(f"query-{epoch}", number)],
        ),
    )
    with EventLogWriter(
        done.project.state_folder, "orders", "orders", f"u-{epoch}-{number}-{rows}"
    ) as events:
        events.emit(
            "flow_progress",
            "a batch",
            level="METRICS",
            flow="silver",
            dataset="silver",
            batch_id=number,
            epoch=epoch,
            details=flow_progress(FlowStatus.RUNNING, metrics={"num_output_rows": rows}),
        )


@pytest.fixture
def three(done: Pipeline) -> Pipeline:
    """Silver with three batches, of 2, 4 and 8 rows, beside the 2 that nobody claims."""
    for number, rows in enumerate((2, 4, 8)):
        batch(done, number, rows)
    done.checkpoint("silver").update_state(query_id="query-0")
    return done


def plan(pipeline: Pipeline, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """What a repair of silver says is lost, and doubled."""
    project = pipeline.project
    roots = [f"--storage={project.storage}", f"--warehouse={project.warehouse}", "--json"]
    code = main(["repair", str(project.folder), "silver", *arguments, *roots])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert code == 0, answer
    repair = answer.get("plan") or answer["repair"]
    return repair["lost"], repair["doubled"]


def test_a_step_back_after_a_step_back(three: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    """The new epoch has written nothing, and the table has the batches of the one before all the same."""
    assert plan(three, capsys, "--action=rewind", "--batch=1", "--yes") == ("no rows", "8 rows (batch 2)")
    assert plan(three, capsys, "--action=rewind") == ("no rows", "8 rows (batch 2)")
    assert plan(three, capsys, "--action=rewind", "--batch=0") == ("no rows", "12 rows (batches 1 to 2)")
    assert plan(three, capsys, "--action=restore") == ("no rows", "no rows")


def test_once_the_new_epoch_has_written(three: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    """Its own batches count under their numbers, and copied ones under those of the epoch that they came from."""
    plan(three, capsys, "--action=rewind", "--batch=0", "--yes")
    batch(three, 1, 16, epoch=1)
    assert plan(three, capsys, "--action=rewind", "--batch=0") == ("no rows", "at least 16 rows (batch 1)")
    batch(three, 2, 32, epoch=1)
    assert plan(three, capsys, "--action=rewind", "--batch=0") == ("no rows", "48 rows (batches 1 to 2)")


def test_a_beginning_anew(three: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    """All that the table has may come again, also right after a step back."""
    shown = "rows: all that the table has, as far as the sources still hold them"
    assert plan(three, capsys, "--action=new-epoch", "--from-start")[1] == f"up to 16 {shown}"
    plan(three, capsys, "--action=rewind", "--batch=0", "--yes")
    assert plan(three, capsys, "--action=new-epoch", "--from-start")[1] == f"up to 16 {shown}"


def test_a_copy_of_another_epoch(three: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers of batches do not say what lies between it and the live one."""
    plan(three, capsys, "--action=new-epoch", "--from-start", "--yes")
    lost, doubled = plan(three, capsys, "--action=restore")
    assert lost.startswith("can't be known")
    assert doubled.startswith("can't be known")


def test_what_was_sent_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target without a table of ours got the batches of each epoch, those of the live one too."""
    sent = {0: {0: 1, 1: 2}, 1: {0: 4}, 2: {3: 8}, 3: {0: 16}}
    monkeypatch.setattr(module, "_rows_of_epoch", lambda _, epoch: sent[epoch])
    case: Any = SimpleNamespace(table=None, epoch=2)
    assert module.rows_in_all(case).startswith("at least 15 rows")
