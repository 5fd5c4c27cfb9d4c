"""A pipeline without sources, and one whose sources may not be read."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.checkpoints.conditions import StorageNotReadable
from headwater.errors import InvalidPipeline
from headwater.graph import required_sources as module


def test_no_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A folder that may not be looked into is the reason where there is one: its files are there."""
    project: Any = SimpleNamespace(folder=tmp_path, spec_file=tmp_path / "pipeline.yml", source_files=list)
    project.spec_file.write_text("name: p")
    (tmp_path / "transformations").mkdir()
    with pytest.raises(InvalidPipeline, match="has no source files"):
        module.required_sources(project)
    monkeypatch.setattr(module, "first_denied", lambda place: place)
    with pytest.raises(StorageNotReadable, match="which source files the pipeline has") as raised:
        module.required_sources(project)
    assert raised.value.where == str(tmp_path / "transformations")
