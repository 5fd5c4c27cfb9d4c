"""What Delta is told of a table's transactions before a commit, and by which Delta it can't be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError
from tests.unit.headwater_spark.recorded_writes import recorded_session

from headwater.runtime.own_classes import KNOWN_TRANSACTIONS
from headwater_spark.delta_writes import known_transactions
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_internals import DELTA
from headwater_spark.delta_writes.known_transactions import transaction_options

BATCH = BatchTransaction("p.f@3", 7, "{}")
CARRIED = {"txnAppId": "p.f@3", "txnVersion": "7"}


class Known(JavaClass):  # type: ignore[misc]
    """Our class of the JVM. ``snapshots``: what it was given."""

    def __init__(self) -> None:
        self.__dict__["snapshots"] = []

    def give(self, snapshot: str) -> None:
        self.snapshots.append(snapshot)


def write_to(patch: pytest.MonkeyPatch, for_table: Any) -> list[str]:
    """Which snapshots are given before a write to a table that carries its batch; ``for_table``: Delta's look for the table."""
    known = Known()
    classes = {KNOWN_TRANSACTIONS: known, f"{DELTA}.DeltaLog": SimpleNamespace(forTable=for_table)}
    patch.setattr(known_transactions, "java_class", lambda _, name: classes[name])
    session = SimpleNamespace(_jvm=None, _jsparkSession="spark")
    assert transaction_options(session, Path("warehouse/t"), BATCH) == CARRIED  # type: ignore[arg-type]
    return list(known.snapshots)


def test_the_snapshot_that_is_known(monkeypatch: pytest.MonkeyPatch):
    """The table's newest known snapshot is given its transactions; nobody asks for a newer one."""

    def for_table(*where: str) -> Any:
        return SimpleNamespace(unsafeVolatileSnapshot=lambda: f"newest of {where}")

    assert write_to(monkeypatch, for_table) == ["newest of ('spark', 'warehouse/t')"]


def test_a_session_without_our_jar():
    """The writer carries the batch all the same, and nothing fails."""
    assert transaction_options(recorded_session(), Path("t"), BATCH) == CARRIED  # type: ignore[arg-type]


def test_another_delta(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    """A Delta without the method is left to itself, with a warning; what fails for another reason is raised."""

    def fails(text: str) -> Any:
        def for_table(*_: str) -> Any:
            raise Py4JError(text)

        return for_table

    assert write_to(monkeypatch, fails("Method forTable([]) does not exist")) == []
    assert "knowing a table's transactions" in caplog.text
    with pytest.raises(Py4JError, match="the disk"):
        write_to(monkeypatch, fails("the disk is full"))
