"""The steps of a backfill around the filling of a table: what is refused, recorded and waited for."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow

from headwater.errors import FlowFailed, UnknownDataset
from headwater_spark.backfills import backfill as module

GUARDS = ("refuse_unfinished", "refuse_old_names", "refuse_foreign_tables", "refuse_nested_on_disk")


class Backfill:
    """A backfill of ``orders``, and what it does in order."""

    def __init__(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, *, fails: Exception | None = None
    ) -> None:
        self.steps: list[Any] = []
        self.leases: list[object] = []
        self.fails = fails
        self.context: Any = context_of(root, dataset(), flows=(flow(),))
        self.context.pipeline.project.lease = self._lease
        for name in GUARDS:
            monkeypatch.setattr(module, name, lambda *_, name=name: self.steps.append(name))
        monkeypatch.setattr(module, "fill_table", self._fill)
        monkeypatch.setattr(module, "asdict", lambda table: {"state": table.state})

    @contextmanager
    def _lease(self, holder: str, *, wait: timedelta) -> Any:
        self.steps.append((holder, wait))
        yield "the lease"
        self.steps.append("released")

    def _fill(self, context: Any, _plan: object, _arguments: object) -> list[Any]:
        self.leases.append(context.lease)
        self.steps.append("fill")
        if self.fails is not None:
            raise self.fails
        return [
            SimpleNamespace(
                dataset="orders", flow="orders", state="COMPLETED", output_rows=2, replaced_rows=1
            )
        ]

    def run(self, *, waits: bool = True, dry_run: bool = False, request: str | None = None) -> list[Any]:
        """The steps."""
        chosen = SimpleNamespace(as_dict=dict)
        plan: Any = SimpleNamespace(
            dataset=dataset(), flows=(flow(),), waits=waits, chosen=chosen, mode="append"
        )
        module._fill(self.context, plan, SimpleNamespace(dry_run=dry_run, request_id=request, again=False))  # type: ignore[arg-type]
        return self.steps

    def events(self) -> list[tuple[str, str]]:
        """What was recorded: of what kind, and how it ended."""
        return [
            (kind, more["details"].get("operation_progress", {}).get("status", ""))
            for kind, _, more in self.context.events.emitted
        ]


@pytest.mark.parametrize(("request_id", "wait"), [(None, timedelta(0)), ("r", timedelta(minutes=10))])
def test_a_table_that_updates_write_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_id: str | None, wait: timedelta
):
    """What is refused is refused first; then the lease is waited for, by a scheduled run alone, and the table filled under it."""
    backfill = Backfill(tmp_path, monkeypatch)
    assert backfill.run(request=request_id) == [*GUARDS, ("backfill-u1", wait), "fill", "released"]
    assert backfill.leases == ["the lease"]
    assert backfill.events() == [("user_action", ""), ("operation_progress", "COMPLETED")]


def test_a_table_beside_a_live_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It takes no lease: the stream goes on."""
    backfill = Backfill(tmp_path, monkeypatch)
    assert backfill.run(waits=False) == [*GUARDS, "fill"]
    assert backfill.leases == [backfill.context.lease]


def test_a_dry_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It takes no lease and leaves no record, whether it fails or not."""
    backfill = Backfill(tmp_path, monkeypatch)
    assert backfill.run(dry_run=True) == [*GUARDS, "fill"]
    backfill.fails = FlowFailed("no")
    with pytest.raises(FlowFailed):
        backfill.run(dry_run=True)
    assert backfill.events() == []


@pytest.mark.parametrize("error", [FlowFailed("no"), ValueError("what Spark said")])
def test_a_table_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception):
    """It has a record, and an error with a name; the lease is released."""
    backfill = Backfill(tmp_path, monkeypatch, fails=error)
    monkeypatch.setattr(module, "flow_error", lambda one, *_: FlowFailed(f"{one.name} failed"))
    with pytest.raises(FlowFailed) as caught:
        backfill.run()
    assert caught.value.what == ("no" if isinstance(error, FlowFailed) else "orders failed")
    assert backfill.events() == [("user_action", ""), ("operation_progress", "FAILED")]
    assert backfill.context.events.emitted[-1][2]["error"] is caught.value


def test_tables_by_their_names(tmp_path: Path):
    """In whatever case; another name is refused with the nearest one."""
    context = context_of(tmp_path, dataset(), dataset("Users"))
    assert module.stored_dataset(context, "USERS").name == "Users"
    with pytest.raises(UnknownDataset) as caught:
        module.stored_dataset(context, "user")
    assert "Users" in caught.value.remedy


@pytest.mark.parametrize(("dry_run", "state"), [(True, "PLANNED"), (False, "COMPLETED")])
def test_the_report_of_a_backfill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dry_run: bool, state: str):
    """All tables are planned before the first is filled; a plan is not called done."""
    steps: list[str] = []
    begun: list[Any] = []
    context: Any = context_of(tmp_path, dataset("a"), dataset("b"))

    @contextmanager
    def live(project: object, backfill_id: str, request_id: str) -> Any:
        begun.append((project, backfill_id, request_id))
        yield context

    def fill(_context: object, plan: str, _arguments: object) -> list[Any]:
        steps.append(f"fill {plan}")
        return [f"table {plan}"]

    monkeypatch.setattr(module, "live_context", live)
    monkeypatch.setattr(module, "plan_table", lambda _, one, __: steps.append(f"plan {one.name}") or one.name)
    monkeypatch.setattr(module, "_fill", fill)
    clock = iter([10.0, 13.5])
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(clock)))

    class Chosen:
        def as_dict(self) -> dict[str, Any]:
            return {"from": 1}

        def __str__(self) -> str:
            return "a range"

    arguments: Any = SimpleNamespace(chosen=Chosen(), tables=("a", "b"), dry_run=dry_run, request_id="r")
    report = module.run_backfill(context.pipeline.project, arguments)
    assert steps == ["plan a", "plan b", "fill a", "fill b"]
    assert begun == [(context.pipeline.project, report.backfill_id, "r")]
    assert (report.state, report.seconds, report.tables) == (state, 3.5, ("table a", "table b"))
    assert ("dry run" in str(report.__dict__)) is dry_run
