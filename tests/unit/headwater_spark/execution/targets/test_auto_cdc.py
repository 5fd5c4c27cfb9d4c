"""What the first batch of a change flow does before it is merged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater_spark.execution.targets import auto_cdc as module
from headwater_spark.execution.targets.auto_cdc import AutoCdc


def test_each_batch_is_merged(monkeypatch: pytest.MonkeyPatch):
    """A flow that must not change is checked before its first batch, and old memory is dropped then; both once in a run."""
    steps: list[Any] = []
    rows: Any = SimpleNamespace(sparkSession="session")
    given: Any = ("target", "columns")
    monkeypatch.setattr(
        module, "check_unchanged", lambda *found, spark: steps.append(("check", *found, spark))
    )
    monkeypatch.setattr(module, "expire", lambda *found: steps.append(("expire", *found)))
    monkeypatch.setattr(module, "apply_changes", lambda *found: steps.append(("apply", *found)))
    target: Any = AutoCdc(*given, "main.py:1")
    for batch in (1, 2):
        target.write(rows, batch)
    assert steps == [
        ("check", "columns", "target", "main.py:1", "session"),
        ("expire", "session", "columns", "target"),
        ("apply", rows, "columns", "target", 1, "main.py:1"),
        ("apply", rows, "columns", "target", 2, "main.py:1"),
    ]


def test_a_check_that_fails_is_made_again(monkeypatch: pytest.MonkeyPatch):
    """Nothing is merged without it."""

    def refuse(*_: object, **__: object) -> None:
        raise ValueError("changed")

    monkeypatch.setattr(module, "check_unchanged", refuse)
    monkeypatch.setattr(module, "apply_changes", lambda *_: pytest.fail("merged"))
    target: Any = AutoCdc(None, None, "-")  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(ValueError, match="changed"):
            target.write(SimpleNamespace(sparkSession=None), 1)


def test_what_the_table_has():
    """The transaction is looked for in the target's own folder."""
    target: Any = AutoCdc(SimpleNamespace(path="folder"), None, "-")  # type: ignore[arg-type]
    assert target.has(SimpleNamespace(is_in=lambda path: path == "folder"))
