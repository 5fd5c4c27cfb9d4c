"""``rename`` and ``move``: a table with all that belongs to it, under another name or in another pipeline; the plan first."""

from __future__ import annotations

import shlex
import sys

from headwater.contract.printing import print_json
from headwater.definitions.dataset_name import DatasetName
from headwater.errors import HeadwaterError, UsageError
from headwater.graph.pipeline_project import PipelineProject
from headwater.moves.move_plan import MovePlan, is_left_over, plan_move
from headwater.moves.move_request import Wish
from headwater.moves.moving import end_left_over, move_table


def rename(project: PipelineProject, dataset: str, new: str, *, yes: bool, as_json: bool) -> int:
    """Give a table of a pipeline another name; without ``yes`` only the plan is printed."""
    dataset = _name(project, dataset).display(catalog=project.spec.catalog, schema=project.spec.schema)
    command = shlex.join(["headwater", "rename", project.folder.name, dataset, new])
    return _answer(Wish(project, project, dataset, new, command), yes=yes, as_json=as_json)


def move(project: PipelineProject, dataset: str, to: PipelineProject, *, yes: bool, as_json: bool) -> int:
    """Have another pipeline own a table; its rows stay at their full name. Without ``yes`` only the plan is printed."""
    if to.state_folder == project.state_folder:
        raise UsageError(
            f"{dataset!r} is a table of that pipeline already.",
            remedy="To give it another name: headwater rename PIPELINE_DIR TABLE NEW",
        )
    name = _name(project, dataset)
    full = name.location.replace("/", ".")
    dataset = name.display(catalog=project.spec.catalog, schema=project.spec.schema)
    command = shlex.join(["headwater", "move", project.folder.name, dataset, "--to", to.folder.name])
    return _answer(Wish(project, to, dataset, full, command), yes=yes, as_json=as_json)


def _name(project: PipelineProject, dataset: str) -> DatasetName:
    return DatasetName.parse(dataset, catalog=project.spec.catalog, schema=project.spec.schema)


def _answer(wish: Wish, *, yes: bool, as_json: bool) -> int:
    try:
        plan = plan_move(wish)
    except HeadwaterError:
        if yes and is_left_over(wish):
            end_left_over(wish)
        raise
    print(plan, file=sys.stderr)
    if yes:
        plan = move_table(wish)
        print(_next(plan), file=sys.stderr)
    else:
        print("Nothing was changed. Add --yes to carry it out.", file=sys.stderr)
    if as_json:
        print_json({"state": "COMPLETED" if yes else "PLANNED", **plan.as_dict()})
    return 0


def _next(plan: MovePlan) -> str:
    target = plan.move.target
    if plan.move.within:
        return f"Done. Now declare the table as {target.dataset!r}, and run `headwater validate`: updates wait for it."
    return (
        f"Done. Now declare {target.dataset!r} in the sources of {target.pipeline}, and take {plan.move.source.dataset!r} out of "
        f"those of {plan.move.source.pipeline}."
    )
