"""A judged batch: the quarantine first, the table second, and what a killed driver left between the two."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.recorded_writes import RecordedFrame

from headwater.definitions.expectation import Expectation, UniqueKey, UniqueWithin, ViolationAction
from headwater.errors import LeaseLost
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.execution.targets import judged as module
from headwater_spark.execution.targets.judged import Judged
from headwater_spark.quarantine.quarantine_table import QuarantineTable
from headwater_spark.quarantine.unreadable_files import UnreadableFile
from headwater_spark.rules.expectations import Quality, RuleCounts

RULES = (Expectation("r", "id > 0", ViolationAction.QUARANTINE),)
FILE = UnreadableFile("/in/a", 0, 7, 0, None, "")


def batch(number: int = 7) -> BatchTransaction:
    """The transaction of a batch."""
    return BatchTransaction("p.f@3", number, json.dumps({"batch": number}))


class Judging:
    """A judgement whose parts only say what they were asked, in order."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        quarantined: int = 1,
        left: bool = False,
        quarantine: bool = True,
    ) -> None:
        self.steps: list[tuple[str, Any]] = []
        self.quality = Quality(5, 1, (RuleCounts("r", 4, 1),), quarantined)
        self.fails = False

        @contextmanager
        def judged_batch(rows: Any, rules: Any, table: Path) -> Any:
            yield "judged", self.quality

        monkeypatch.setattr(module, "judged_batch", judged_batch)
        monkeypatch.setattr(module, "kept_rows", lambda rows, _: f"kept of {rows}")

        def write(rows: Any, transaction: BatchTransaction) -> None:
            self.steps.append(("table", (rows, transaction)))
            if self.fails:
                raise OSError

        def step(name: str) -> Any:
            return lambda rows, transaction, files: self.steps.append((name, (rows, transaction, files)))

        target: Any = SimpleNamespace(write=write, has=lambda one: one.batch_id == 3)
        table: Any = SimpleNamespace(has=lambda _: left, hold=step("hold"), replace=step("replace"))
        self.judged = Judged(target, RULES, Path("/t"), table if quarantine else None, lambda: None)

    def write(self, number: int = 7) -> list[str]:
        self.judged.write(None, batch(number))  # type: ignore[arg-type]
        return [name for name, _ in self.steps]


def test_the_quarantine_is_written_first(monkeypatch):
    """A batch that the table has is whole: what it kept out is there before. Both carry what the batch came to."""
    judging = Judging(monkeypatch)
    assert judging.write() == ["hold", "table"]
    (_, held), (_, written) = judging.steps
    assert held[0] == "judged"
    assert written[0] == "kept of judged"
    assert held[1] == written[1]
    assert (written[1].application, written[1].batch_id) == ("p.f@3", 7)
    assert json.loads(written[1].user_metadata) == {
        "batch": 7,
        "quality": {"rows": 5, "dropped": 1, "quarantined": 1, "failed": {"r": 1}, "files": 0},
    }
    assert judging.judged.qualities == {7: judging.quality}


def test_no_table_is_written_without_the_lease(monkeypatch):
    """It is checked before the quarantine's commit and before the table's; whoever lost it between the two writes no more."""
    judging = Judging(monkeypatch)
    judging.judged.check_lease = lambda: judging.steps.append(("lease", None))
    assert judging.write() == ["lease", "hold", "lease", "table"]
    judging.steps.clear()

    def lost_after_the_first() -> None:
        if judging.steps:
            raise LeaseLost("gone")

    judging.judged.check_lease = lost_after_the_first
    with pytest.raises(LeaseLost):
        judging.write(8)
    assert [name for name, _ in judging.steps] == ["hold"]


def test_rows_that_take_the_place_of_all(monkeypatch, tmp_path: Path):
    """What is kept out of them takes the place of all that was, also where nothing is; nothing in the table is compared."""
    compared: list[Any] = []
    for quarantined, there in ((1, False), (0, True), (0, False)):
        judging = Judging(monkeypatch, quarantined=quarantined)
        known = module.judged_batch
        monkeypatch.setattr(
            module, "judged_batch", lambda *given, known=known: compared.append(given[2]) or known(*given)
        )
        monkeypatch.setattr(module, "table_exists", lambda _, there=there: there)
        table: Any = judging.judged.quarantine
        table.path, table.replace_all = tmp_path, lambda *_, steps=judging.steps: steps.append(("all", None))
        judging.judged.whole = True
        assert judging.write() == (["all", "table"] if quarantined or there else ["table"])
    assert compared == [None] * 3


def test_nothing_to_hold(monkeypatch):
    """A batch without quarantined rows makes no commit in the quarantine; nor does a table without one."""
    assert Judging(monkeypatch, quarantined=0).write() == ["table"]
    assert Judging(monkeypatch, quarantine=False).write() == ["table"]


def test_a_batch_that_a_killed_driver_left_in_the_quarantine(monkeypatch):
    """Its rows are put anew, since rules may have changed meanwhile, also by none; only the first batch of a run can be one."""
    judging = Judging(monkeypatch, quarantined=0, left=True)
    assert judging.write(7) == ["replace", "table"]
    judging.quality = replace(judging.quality, quarantined=1)
    assert judging.write(8) == ["replace", "table", "hold", "table"]


def test_files_that_can_not_be_read(monkeypatch):
    """Each is kept with its own batch, and counted beside the rows."""
    judging = Judging(monkeypatch, quarantined=0)
    judging.judged.unreadable = (FILE, *(replace(FILE, batch_id=other) for other in (6, 8)))
    assert judging.write(7) == ["hold", "table"]
    assert judging.steps[0][1][2] == [FILE]
    assert judging.judged.qualities[7].files == 1


def test_a_batch_that_the_table_has(monkeypatch):
    """The table's target knows."""
    judging = Judging(monkeypatch)
    assert judging.judged.has(batch(3))
    assert not judging.judged.has(batch(4))


def test_flows_that_look_for_keys_take_turns(monkeypatch):
    """A key that is to be there once in a table: who looks writes before the next one looks."""
    judging = Judging(monkeypatch)
    judging.judged.rules = (
        Expectation("u", "", ViolationAction.DROP, unique=UniqueKey(("id",), UniqueWithin.TABLE)),
    )
    seen: list[bool] = []
    judging.judged.target = SimpleNamespace(  # type: ignore[assignment]
        write=lambda *_: seen.append(module._LOCKS[Path("/t")].locked())
    )
    judging.judged.write(None, batch())  # type: ignore[arg-type]
    judging.judged.rules = RULES
    judging.judged.write(None, batch(8))  # type: ignore[arg-type]
    assert seen == [True, False]


class Staged:
    """An append whose files are written."""

    def __init__(self, rows: int | None, steps: list[tuple[str, Any]]) -> None:
        self.rows, self._steps = rows, steps

    def commit(self, transaction: BatchTransaction) -> None:
        self._steps.append(("commit", transaction))


def one_pass(
    monkeypatch: pytest.MonkeyPatch,
    *,
    rows: int | None = 3,
    held: Any = "held",
    staged: bool = True,
    fits: bool = True,
) -> Judging:
    """A judgement while rows are written: ``rows`` were staged, ``held`` came back."""
    judging = Judging(monkeypatch)
    judging.judged.one_pass = True
    judging.judged.target = DeltaAppend(Path("/t"), ("day",))
    write = lambda self, rows, transaction: judging.steps.append(("table", (rows, transaction)))  # noqa: E731
    monkeypatch.setattr(DeltaAppend, "write", write)
    monkeypatch.setattr(module, "BatchObservation", lambda: "seen")
    monkeypatch.setattr(module, "can_collect", lambda *_: fits)
    monkeypatch.setattr(module, "observe_rows", lambda rows, *_: rows)
    found = Staged(rows, judging.steps) if staged else None
    monkeypatch.setattr(module, "stage_append", lambda *_: found)
    monkeypatch.setattr(module, "read_observed", lambda *_: (judging.quality, held))
    return judging


def write_one(judging: Judging) -> list[str]:
    """The steps of one batch."""
    judging.judged.write(SimpleNamespace(schema=None), batch())  # type: ignore[arg-type]
    return [name for name, _ in judging.steps]


@pytest.mark.parametrize("rows", [3, None])
def test_judged_while_it_is_written(monkeypatch, rows):
    """Files first, then the quarantine, then the commit that makes the files part of the table."""
    judging = one_pass(monkeypatch, rows=rows)
    assert write_one(judging) == ["hold", "commit"]
    assert judging.steps[0][1][0] == "held"
    assert "quality" in json.loads(judging.steps[1][1].user_metadata)
    assert judging.judged.one_pass


def test_files_are_not_committed_without_the_lease(monkeypatch):
    """It is checked before the quarantine's commit, and once more before the one that makes the files part of the table."""
    judging = one_pass(monkeypatch)
    judging.judged.check_lease = lambda: judging.steps.append(("lease", None))
    assert write_one(judging) == ["lease", "hold", "lease", "commit"]


@pytest.mark.parametrize(("options", "again"), [({"rows": 4}, False), ({"rows": 2}, False), ({"held": None}, False),
                                                ({"staged": False}, True), ({"fits": False}, True)])  # fmt: skip
def test_what_can_not_be_judged_so(monkeypatch, options: dict[str, Any], again: bool):
    """Where the rows staged are not those that were kept, or not all held rows came back, nothing of the pass is used: the
    batch is judged from what is kept of it, and the next ones, too.
    """
    judging = one_pass(monkeypatch, **options)
    assert write_one(judging) == ["hold", "table"]
    assert judging.steps[0][1][0] == "judged"
    assert judging.judged.one_pass is again


def test_what_the_quarantine_table_is_told(monkeypatch, tmp_path: Path):
    """Held rows are appended under the batch's id and number; a batch that comes again takes the place of its own rows
    alone; a view's quarantine is replaced whole.
    """
    table, rows = QuarantineTable(tmp_path, "it's", 3, "u1", RULES), RecordedFrame()
    monkeypatch.setattr(QuarantineTable, "_rows", lambda *_: rows)
    table.hold(rows, batch())  # type: ignore[arg-type]
    table.replace(rows, batch())  # type: ignore[arg-type]
    table.replace_all(rows, batch())  # type: ignore[arg-type]
    told = {"mergeSchema": "true", "userMetadata": '{"batch": 7}'}
    hold, again, whole = rows.writes
    assert (hold.words["mode"], hold.options_given) == (
        "append",
        {**told, "txnAppId": "p.f@3", "txnVersion": "7"},
    )
    condition = "_flow = 'it''s' AND _epoch = 3 AND _batch = 7"
    assert (again.words["mode"], again.options_given) == ("overwrite", {**told, "replaceWhere": condition})
    assert (whole.words["mode"], whole.options_given) == ("overwrite", told)
    assert {write.path for write in rows.writes} == {str(tmp_path)}
