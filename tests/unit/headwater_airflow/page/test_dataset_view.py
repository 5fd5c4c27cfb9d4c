"""What the page says of the lag of one dataset."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.definitions.source import SourceKind
from headwater_airflow.page import dataset_view as module


def flow(name: str, *kinds: SourceKind) -> Any:
    """A flow over sources of these kinds."""
    return SimpleNamespace(name=name, sources=tuple(SimpleNamespace(kind=kind) for kind in kinds))


def lag(
    records: int | None = 0, *, moved: bool = True, unknown: str | None = None, seconds: float | None = None
) -> Any:
    """What is measured of a flow over tables."""
    backlog = SimpleNamespace(unknown=unknown, moved=moved, records=records, versions=None, seconds=seconds)
    return SimpleNamespace(backlog=backlog)


DELTA, KAFKA = SourceKind.DELTA, SourceKind.KAFKA


@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        ([], ("–", False)),
        ([flow("still", DELTA)], ("none", False)),
        ([flow("unknown", DELTA)], ("not known", False)),
        ([flow("behind", DELTA)], ("7 rows", True)),
        # The last batch of a topic says how many records were left.
        ([flow("topic", KAFKA)], ("3 rows at the last batch", True)),
        ([flow("read", KAFKA)], ("none at the last batch", False)),
        ([flow("new", KAFKA)], ("–", False)),
        ([flow("behind", KAFKA, DELTA)], ("–", False)),
        ([flow("still")], ("–", False)),
        ([flow("behind", DELTA), flow("still", DELTA)], ("7 rows, none", True)),
        ([flow("still", DELTA), flow("behind", DELTA), flow("behind", DELTA)], ("none, 7 rows", True)),
    ],
)
def test_the_lag_of_a_dataset(monkeypatch: pytest.MonkeyPatch, flows: list[Any], expected: tuple[str, bool]):
    """Flows over tables alone are measured, of others the last batch counts; one flow that is behind makes the dataset so."""
    measured = {"still": lag(moved=False), "unknown": lag(unknown="the log is gone"), "behind": lag(7)}
    monkeypatch.setattr(module, "flow_lag", lambda _, one, connect: measured[one.name])
    batches = {"topic": (9, 3, None), "read": (9, 0), "new": (None,)}
    kept = {name: [SimpleNamespace(backlog=left) for left in lefts] for name, lefts in batches.items()}
    project, history = SimpleNamespace(), SimpleNamespace(batches=kept)
    assert module._backlog(project, flows, history) == expected  # type: ignore[arg-type]
