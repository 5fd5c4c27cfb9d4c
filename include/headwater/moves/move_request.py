"""What a rename or a move is asked for: which table of which pipeline becomes what."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.definitions.dataset_name import DatasetName
from headwater.graph.pipeline_project import PipelineProject
from headwater.storage.place import Place, near


@dataclass(frozen=True)
class Wish:
    """The request: a table of ``source`` is to become ``new`` in ``target``; ``command``: how to repeat it."""

    source: PipelineProject
    target: PipelineProject
    dataset: str
    new: str
    command: str

    @property
    def states(self) -> tuple[Place, ...]:
        """The folders of the pipelines, the target's first: the pipeline that has nothing to lose yet waits first."""
        return tuple(dict.fromkeys((self.target.state_folder, self.source.state_folder)))

    @property
    def new_name(self) -> DatasetName:
        """The new name as the target reads it; raises InvalidName."""
        spec = self.target.spec
        return DatasetName.parse(self.new, catalog=spec.catalog, schema=spec.schema)

    @property
    def new_shown(self) -> str:
        """The new name as the target shows it; errors as of ``new_name``."""
        spec = self.target.spec
        return self.new_name.display(catalog=spec.catalog, schema=spec.schema)

    def place(self, text: str) -> Place:
        """A place of the move as it is written down, reached by the settings of the pipelines."""
        sides = (self.source, self.target)
        roots = [root for side in sides for root in (side.storage, side.warehouse)]
        root = next((root for root in roots if f"{text}/".startswith(f"{root}/")), self.source.storage)
        return near(root, text)
