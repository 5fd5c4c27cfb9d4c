"""``relocate``: a pipeline with its tables and checkpoints to other roots; the plan first."""

from __future__ import annotations

import shlex
import sys

from headwater.contract.printing import print_json
from headwater.graph.pipeline_project import PipelineProject
from headwater.moves.relocating import relocate
from headwater.moves.relocation_plan import plan_relocation


def relocate_pipeline(source: PipelineProject, target: PipelineProject, *, yes: bool, as_json: bool) -> int:
    """Give a pipeline the roots of ``target``; without ``yes`` only the plan is printed."""
    roots = {
        "--storage": source.storage,
        "--warehouse": source.warehouse,
        "--to-storage": target.storage,
        "--to-warehouse": target.warehouse,
    }
    words = [f"{name}={place}" for name, place in roots.items()]
    command = shlex.join(["headwater", "relocate", source.folder.name, *words])
    plan = plan_relocation(source, target, command)
    print(plan, file=sys.stderr)
    if yes:
        plan = relocate(source, target, command)
        print(
            f"Done: every copy is what its original is. Now set HEADWATER_STORAGE={target.storage} and "
            f"HEADWATER_WAREHOUSE={target.warehouse} for everything that runs or reads it (or `storage` in pipeline.yml), and run "
            "an update. Then what is left at the old place may be removed.",
            file=sys.stderr,
        )
    else:
        print("Nothing was changed. Add --yes to carry it out.", file=sys.stderr)
    if as_json:
        print_json({"state": "COMPLETED" if yes else "PLANNED", **plan.as_dict()})
    return 0
