"""A pipeline whose storage and warehouse lie in a bucket of the server that the environment leads to."""

from __future__ import annotations

from tests.pipeline_case import PipelineCase

from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.storage.access import object_store
from headwater.storage.place import place_of

BUCKET = "lake"


class StoredCase(PipelineCase):
    """As ``PipelineCase``, with both roots in the bucket ``lake``. What is landed, and the pipeline itself, lie in folders."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # Other tests of this process had other servers.
        store = object_store("s3")
        self.storage = place_of(f"s3://{BUCKET}/storage", store=store)  # type: ignore[assignment]
        self.warehouse = place_of(f"s3://{BUCKET}/warehouse", store=store)  # type: ignore[assignment]

    def project(self, **parameters: str) -> PipelineProject:
        return open_project(
            self.folder, storage=self.storage, warehouse=self.warehouse, parameters=parameters
        )
