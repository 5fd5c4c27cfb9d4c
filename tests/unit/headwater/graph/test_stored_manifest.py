"""Which of the two manifests of a pipeline the reading verbs go by."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from headwater.errors import ManifestNotFound
from headwater.graph.manifest import FILE_NAME, Manifest
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.graph.stored_manifest import stored_manifest


@pytest.fixture
def project(tmp_path: Path) -> PipelineProject:
    """A pipeline that is given a parameter."""
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "pipeline.yml").write_text("name: p\nparameters: {days: {default: '1'}}\n")
    return open_project(
        folder, environment={"HEADWATER_STORAGE": str(tmp_path / "storage")}, parameters={"days": "2"}
    )


def written(
    project: PipelineProject, folder: Path, name: str, *, stale: bool = False, other: bool = False
) -> None:
    """A manifest of the sources as they are, or were; ``other``: resolved with other parameters."""
    manifest = Manifest(
        headwater_version="0", pipeline_id="p", pipeline_name=name, schema_name="p", datasets=(), flows=(),
        source_hash="sha256:0" if stale else project.source_hash(),
        parameters_hash="other" if other else project.parameters_hash(),
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE_NAME).write_text(manifest.to_json())


@pytest.mark.parametrize(
    ("updated", "committed", "chosen", "warned"),
    [
        ({}, {}, "updated", None), ({"stale": True}, {}, "committed", None), (None, {}, "committed", None),
        ({"stale": True}, {"stale": True}, "updated", "have changed"), ({"other": True}, {}, "updated", "other parameters"),
    ],
)  # fmt: skip
def test_which_one_counts(
    project: PipelineProject, caplog: pytest.LogCaptureFixture,
    updated: dict[str, bool] | None, committed: dict[str, bool], chosen: str, warned: str | None,
):  # fmt: skip
    """The last update's before the committed one, but one of the sources as they are before a stale one, which is said."""
    if updated is not None:
        written(project, project.state_folder, "updated", **updated)
    written(project, project.folder, "committed", **committed)
    with caplog.at_level(logging.WARNING):
        assert stored_manifest(project).pipeline_name == chosen
    assert [warned in record.getMessage() for record in caplog.records] == ([] if warned is None else [True])


def test_none_is_there(project: PipelineProject):
    """The error says what makes one."""
    with pytest.raises(ManifestNotFound) as caught:
        stored_manifest(project)
    assert "validate" in caught.value.remedy
