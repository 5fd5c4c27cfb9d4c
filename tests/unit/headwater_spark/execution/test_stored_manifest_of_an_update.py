"""The manifest that an update stores where storage is on S3: of who has the lease, and of nobody who had it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from tests.object_stores import StoreServer, leading_to
from tests.unit.headwater.metrics.conftest import Pipeline, done, pipeline

from headwater.errors import LeaseLost
from headwater.graph.manifest import FILE_NAME
from headwater.graph.update_plan import Selection
from headwater_spark.execution import update
from headwater_spark.execution.update import UpdateRequest, run_update

__all__ = ["done", "pipeline"]


@pytest.fixture
def roots(light_store: StoreServer, tmp_path, monkeypatch):
    """Both roots in one bucket."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    with leading_to(light_store):
        light_store.make_bucket("manifests")
        root = light_store.place("manifests", str(time.time_ns()))
        yield root / "storage", root / "warehouse"


class Enough(Exception):
    """Ends the update once its manifest is stored."""


@pytest.mark.parametrize("another", [True, False])
def test_a_manifest_that_comes_late(done: Pipeline, monkeypatch: pytest.MonkeyPatch, another: bool):
    """An update that stood still in the write of its manifest leaves that of the command or update that came in between."""

    @contextmanager
    def resolved(*_):
        yield SimpleNamespace(manifest=done.manifest)

    def stands_still(*_):
        if another:
            file.write_text("of a later update")

    def enough(*_):
        raise Enough

    file = done.project.state_folder / FILE_NAME
    file.write_text(done.manifest.model_copy(update={"source_hash": "of before"}).to_json())
    monkeypatch.setattr(update, "resolved_pipeline", resolved)
    monkeypatch.setattr(
        update, "start_session", lambda *_: SimpleNamespace(sparkContext=SimpleNamespace(uiWebUrl=None))
    )
    monkeypatch.setattr(update, "close_dead_updates", stands_still)
    monkeypatch.setattr(update, "ProgressListener", enough)
    with pytest.raises(LeaseLost if another else Enough):
        run_update(done.project, UpdateRequest(Selection()))
    assert file.read_text() == ("of a later update" if another else done.manifest.to_json())
