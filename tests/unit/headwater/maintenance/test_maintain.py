"""One table's trouble is not the others', and what is refused is named."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from tests.unit.headwater.metrics.conftest import write_rows

from headwater.commands.maintenance import driver_outcomes
from headwater.errors import LeaseLost, MaintenanceFailed
from headwater.maintenance import reader_positions, storage_cleaning
from headwater.maintenance.chore import ChoreKind, Step
from headwater.maintenance.maintain import Ending, check_outcomes, maintain
from headwater.storage.conditions import StoreUnreachable
from headwater.storage.walking import readable


class Broken:
    """A chore that fails."""

    kind, subject = ChoreKind.OPTIMIZE, "t"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def look(self):
        return Step(self.kind, self.subject, "rewrite")

    def carry_out(self, step, rewrite):
        raise self.error


def test_a_conflict_is_left_for_the_next_run(kept):
    """Another writer's commit is not a failure; what else goes wrong is, and both let the others go on."""
    chores = [Broken(CommitFailedError("a concurrent transaction")), Broken(OSError("no space"))]
    left, failed = maintain(kept.project, chores)
    assert (left.ending, failed.ending) == (Ending.LEFT, Ending.FAILED)
    assert "the next run tries again" in left.message
    assert failed.message == "OSError: no space"


def test_a_store_that_was_away(kept):
    """Where all that failed did so for that, a retry helps; one other failure, and it does not."""
    away, broken = Broken(StoreUnreachable("no answer")), Broken(OSError("no space"))
    with pytest.raises(StoreUnreachable, match="no answer"):
        check_outcomes(maintain(kept.project, [away]))
    with pytest.raises(MaintenanceFailed, match="2 of 2 steps"):
        check_outcomes(maintain(kept.project, [away, broken]))


@pytest.mark.parametrize("chore", ["vacuum", "orphans"])
def test_a_store_that_is_away_while_it_is_looked_at(kept, monkeypatch, chore):
    """Nothing is done, and that is no success: nobody knows what is due, and a retry helps. The plan alone says why it is incomplete."""
    assert kept.call("--only", chore, "--yes")[0] == 0

    def reads(_):
        raise StoreUnreachable("no answer")

    for module in (reader_positions, storage_cleaning):
        monkeypatch.setattr(module, "read_manifest", reads)
    code, answer = kept.call("--only", chore)
    assert code == 0
    assert all("no answer" in remark["why"] for remark in answer["plan"]["left_out"])
    assert answer["plan"]["left_out"]
    code, answer = kept.call("--only", chore, "--yes")
    assert (code, answer["error"]["condition"], answer["error"]["transient"]) == (
        1,
        "STORE_UNREACHABLE",
        True,
    )


@pytest.mark.parametrize(("condition", "passes"), [("STORE_UNREACHABLE", True), ("LEASE_LOST", False)])
def test_the_driver_that_met_it(condition, passes):
    """So it is where Spark's part failed with its driver."""
    plan = SimpleNamespace(for_spark=[Step(ChoreKind.OPTIMIZE, "t", "rewrite")])
    report = {"error": {"condition": condition, "message": "no answer"}}
    (outcome,) = driver_outcomes(plan, report)
    assert (outcome.ending, outcome.message, outcome.passes) == (Ending.FAILED, "no answer", passes)


def test_a_damaged_table_does_not_stop_the_others(kept):
    """Silver's log is damaged: it is named, and bronze is done."""
    for value in range(4):
        write_rows(kept.pipeline.table("bronze"), value)
    (kept.pipeline.table("silver") / "_delta_log" / f"{0:020d}.json").write_text("{")
    _, answer = kept.call("--only", "optimize")
    assert "can't be looked at" in answer["plan"]["left_out"][0]["why"]
    code, answer = kept.call("--only", "optimize", "--yes")
    assert (code, answer["error"]["condition"]) == (1, "MAINTENANCE_FAILED")
    assert "silver" in answer["error"]["message"]
    assert len(kept.live("bronze")) == 1
    code, answer = kept.call("--only", "optimize", "--yes")
    assert (code, answer["error"]["condition"]) == (1, "MAINTENANCE_FAILED"), "also where nothing else is due"


def test_the_log_gets_a_checkpoint_with_its_transactions(kept):
    """After ten commits; the checkpoint alone still says which batches the table has."""
    import pyarrow as pa

    table = kept.pipeline.table("bronze")
    for batch in range(10):
        known = CommitProperties(app_transactions=[Transaction("orders.bronze@0", batch)])
        write_deltalake(str(table), pa.table({"id": [batch]}), mode="append", commit_properties=known)
    for file in (table / "_delta_log").glob("*checkpoint*"):
        file.unlink()
    code, answer = kept.call("--only", "checkpoint", "--yes")
    assert (code, answer["steps"][0]["message"]) == (0, "checkpoint written")
    (file,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    kept_txn = [entry for entry in pq.read_table(readable(file))["txn"].to_pylist() if entry]
    assert [(entry["appId"], entry["version"]) for entry in kept_txn] == [("orders.bronze@0", 9)]
    assert DeltaTable(str(table)).version() == 10


def test_bad_arguments_are_refused(kept):
    """A table that does not exist, an unknown kind, and a span that does not parse."""
    for arguments in (("--tables", "nope"), ("--only", "sweep"), ("--keep", "long")):
        assert kept.call(*arguments)[0] == 2
    assert kept.call("--only", "event-log", "--yes")[0] == 0


class Slow:
    """A chore that looks so long that its lease is taken away meanwhile."""

    kind, subject = ChoreKind.OPTIMIZE, "t"

    def __init__(self, project) -> None:
        self.project, self.done = project, False

    def look(self):
        (self.project.state_folder / "update.lease").unlink()
        return Step(self.kind, self.subject, "rewrite")

    def carry_out(self, step, rewrite):
        self.done = True
        return "rewritten"


def test_without_its_lease_nothing_is_rewritten(kept):
    """A chore whose lease was taken away while it looked is not carried out, nor is what comes after it."""
    chore, after = Slow(kept.project), Slow(kept.project)
    with pytest.raises(LeaseLost):
        maintain(kept.project, [chore, after])
    assert not chore.done
    assert not after.done
