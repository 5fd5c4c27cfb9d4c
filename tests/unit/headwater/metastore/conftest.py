"""A pipeline on disk whose spec names a metastore service, which answers on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.metastore_in_memory import MetastoreInMemory, metastore_in_memory
from tests.unit.headwater.metrics.conftest import Pipeline, done, pipeline

from headwater.graph.pipeline_project import open_project

__all__ = ["done", "pipeline"]


@pytest.fixture
def metastore() -> Iterator[MetastoreInMemory]:
    """A service that is empty."""
    with metastore_in_memory() as running:
        yield running


@pytest.fixture
def listed(done: Pipeline, metastore: MetastoreInMemory) -> Pipeline:
    """The pipeline after an update, with a metastore that has not heard of it."""
    return at(done, metastore.uri)


def at(done: Pipeline, uri: str | None) -> Pipeline:
    """The pipeline with a metastore at an address."""
    text = "name: orders\nschema: shop\n" + (f"metastore: {{uri: '{uri}'}}\n" if uri else "")
    done.project.spec_file.write_text(text)
    project = open_project(
        done.project.folder, storage=done.project.storage, warehouse=done.project.warehouse
    )
    return replace(done, project=project)
