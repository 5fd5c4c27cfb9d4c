"""A pipeline that is looked at again and again is read again only where one of its files was written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from headwater.graph.manifest import FILE_NAME
from headwater_airflow.conditions import observed
from headwater_airflow.conditions.observed import ObservedPipeline


@pytest.mark.parametrize("changed", ["spec.yml", f"folder/{FILE_NAME}", f"state/{FILE_NAME}"])
def test_when_it_is_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changed: str):
    """Its spec, and the manifests of the checkout and of the last update, each of which may not be there yet."""
    reads: list[str] = []
    for name in ("folder", "state"):
        (tmp_path / name).mkdir()
    (tmp_path / "spec.yml").write_text("name: p")
    project = SimpleNamespace(
        spec_file=tmp_path / "spec.yml", folder=tmp_path / "folder", state_folder=tmp_path / "state"
    )
    monkeypatch.setattr(observed, "pipeline_project", lambda name, alone: reads.append(name) or project)
    monkeypatch.setattr(observed, "observed_manifest", lambda _: f"manifest {len(reads)}")
    pipeline = ObservedPipeline("p")
    for _ in range(2):
        assert pipeline.read() == (project, "manifest 1")
    (tmp_path / changed).write_text("changed")
    assert pipeline.read() == (project, "manifest 2")
    assert pipeline.read() == (project, "manifest 2")
    assert reads == ["p", "p"]
