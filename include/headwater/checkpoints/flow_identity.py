"""The names under which a flow commits: its own, or those that it had before its table was renamed or moved.

A flow's commits carry ``<pipeline>.<flow>@<epoch>``, and Delta recognises a repeated batch by that id. A rename must not
change it: the batch in flight would be written twice. So the names of the first start stay in what is written, in a file
beside the checkpoints (``system/flow_names.json``) that outlives them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.checkpoints.guarded_files import Guarded, GuardedKind
from headwater.storage.place import Place


@dataclass(frozen=True)
class FlowIdentity:
    """The names in a flow's commits: ``pipeline`` is the id of a pipeline, ``flow`` the name of a flow of it."""

    pipeline: str
    flow: str

    @property
    def names(self) -> tuple[str, str]:
        """Both, in the order in which other functions take them."""
        return self.pipeline, self.flow

    def application(self, epoch: int) -> str:
        """The id under which an epoch commits where the Delta sink itself does not."""
        return f"{self.pipeline}.{self.flow}@{epoch}"


def names_file(state_folder: Place) -> Place:
    """The file of former names; it does not exist where no name was ever changed."""
    return state_folder / "system" / "flow_names.json"


_NAMES: GuardedKind[dict[str, FlowIdentity]] = GuardedKind(
    lambda content: {key: FlowIdentity(*names) for key, names in content.items()},
    {
        "what": "The file with the former names of renamed flows",
        "unknown": "which names renamed flows had",
        "remedy": "Restore it from a backup: without it, the batches of these flows would not be recognised as theirs.",
    },
)


def former_names(state_folder: Place) -> dict[str, FlowIdentity]:
    """The flows whose commits carry other names than their own, by ``<dataset>/<flow>``; raises FlowStateDamaged."""
    return _NAMES.record(names_file(state_folder)) or {}


def read_names(state_folder: Place) -> Guarded[dict[str, FlowIdentity]]:
    """The file for who changes it: a batch would be written twice under a name that one who stood still has put back."""
    return _NAMES.seen(names_file(state_folder))


def as_text(names: Mapping[str, FlowIdentity]) -> str:
    """The text of the file."""
    return json.dumps({key: names[key].names for key in sorted(names)}, indent=1) + "\n"


def flow_identity(state_folder: Place, pipeline_id: str, dataset: str, flow: str) -> FlowIdentity:
    """The names in the commits of a flow; ``state_folder`` and ``dataset`` as for ``flow_checkpoint``."""
    own = FlowIdentity(pipeline_id, flow)
    return former_names(state_folder).get(f"{dataset}/{flow}", own)
