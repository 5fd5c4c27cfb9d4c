"""Rows of a batch that is not done are not replayed: the batch comes again, and would bring them a second time."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, plan_batch, run_of, state_of

from headwater.errors import UsageError
from headwater.quarantine import columns as c
from headwater_spark.replays import replay as module


@pytest.mark.parametrize(
    ("planned", "marked", "in_table", "row", "refused"),
    [
        (7, 6, False, (3, 7), True),
        (7, 6, False, (3, 6), False),  # of a batch that is done
        (7, 6, False, (2, 7), False),  # of an earlier epoch
        (7, 6, True, (3, 7), False),  # the table has it: it is skipped when it comes again
        (7, 7, False, (3, 7), False),
    ],
)
def test_rows_of_a_batch_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planned: int, marked: int, in_table: bool, row: tuple[int, int], refused: bool
):  # fmt: skip
    """They are refused where the last batch is planned, not marked as done, and not in the table."""
    plain_functions(monkeypatch, module)
    one = flow()
    run = run_of(context_of(tmp_path, dataset(), flows=(one,)), dataset(), one)
    checkpoint = state_of(run.context, epoch=3)
    for batch in range(planned + 1):
        plan_batch(checkpoint.epoch_folder(3), batch, {}, done=batch <= marked)
    monkeypatch.setattr(
        module, "target_of", lambda _: SimpleNamespace(has=lambda one: in_table and one.batch_id == planned)
    )
    rows: Any = Frame([{c.EPOCH: row[0], c.BATCH: row[1]}], [c.EPOCH, c.BATCH])
    if refused:
        with pytest.raises(UsageError, match=f"batch {planned}"):
            module._check_done(run, rows)
    else:
        module._check_done(run, rows)


def test_flows_that_repeat_no_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One that runs once, or never ran, has no batch that would bring its rows again."""
    plain_functions(monkeypatch, module)
    monkeypatch.setattr(module, "target_of", lambda _: SimpleNamespace(has=lambda _: False))
    rows: Any = Frame([{c.EPOCH: 3, c.BATCH: 7}], [c.EPOCH, c.BATCH])
    never = run_of(context_of(tmp_path / "never", dataset()), dataset(), flow())
    module._check_done(never, rows)
    for once in (True, False):
        one = flow(once=once)
        run = run_of(context_of(tmp_path / str(once), dataset(), flows=(one,)), dataset(), one)
        plan_batch(state_of(run.context, epoch=3).epoch_folder(3), 7, {})
        if once:
            module._check_done(run, rows)
        else:
            with pytest.raises(UsageError, match="batch 7"):
                module._check_done(run, rows)
