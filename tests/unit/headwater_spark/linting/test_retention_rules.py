"""Retention that is shorter than the time between updates, whoever says when these are."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.source import SourceKind
from headwater.graph.manifest import SourceEntry
from headwater.storage.conditions import StoreUnreachable
from headwater_spark.linting import retention_rules
from headwater_spark.linting.retention_rules import short_retention

SHORT = {
    "delta.logRetentionDuration": "interval 6 hours",
    "delta.deletedFileRetentionDuration": "interval 2 days",
}


def reading(warehouse: Path, schedule: str | None, **given: Any) -> Any:
    """A flow that reads a table of others, in a pipeline whose sources want a schedule."""
    source = SourceEntry(kind=SourceKind.DELTA, streaming=True, location="raw/events")
    manifest = SimpleNamespace(flow=lambda _: SimpleNamespace(sources=(source,)), schedule=schedule)
    spec = PipelineSpec.model_validate({"name": "a", **given})
    return SimpleNamespace(
        pipeline=SimpleNamespace(manifest=manifest, project=SimpleNamespace(warehouse=warehouse, spec=spec)),
        flow=SimpleNamespace(name="copy"),
        find=lambda code, message, *_: (code, message),
    )


@pytest.mark.parametrize(
    ("schedule", "given", "codes"),
    [
        (None, {}, []),
        (None, {"airflow": {"schedule": "0 3 * * *"}}, ["HW301"]),
        ("0 3 * * *", {}, ["HW301"]),
        ("0 3 * * 1", {}, ["HW301", "HW302"]),
        ("0 3 * * 1", {"airflow": {"schedule": "*/5 * * * *"}}, []),
        ("0 3 * * 1", {"airflow": {"schedule": None}}, []),
        ("0 3 * * 1", {"trigger": "continuous"}, []),
        (None, {"airflow": {"schedule": "on_data"}}, []),
    ],
)
def test_the_schedule_that_holds(
    tmp_path: Path, schedule: str | None, given: dict[str, Any], codes: list[str]
):
    """That of pipeline.yml, else the SCHEDULE of a SQL source; where nobody says when updates are, there is no gap to compare."""
    (tmp_path / "raw").mkdir()
    write_deltalake(str(tmp_path / "raw" / "events"), pa.table({"id": [1]}), configuration=SHORT)
    findings = list(short_retention(reading(tmp_path, schedule, **given)))
    assert [code for code, _ in findings] == codes
    assert all("the schedule (0 3 * * " in message for _, message in findings)


def test_a_table_that_is_not_to_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a store keeps from whoever validates is not called too short."""

    def away(*_: object) -> Any:
        raise StoreUnreachable("The object store does not answer.")

    monkeypatch.setattr(retention_rules, "delta_table", away)
    assert list(short_retention(reading(tmp_path, "0 3 * * 1"))) == []
