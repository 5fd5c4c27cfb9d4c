"""``drop``: a table with all that belongs to it; the plan first, ``--yes`` carries it out."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from headwater.contract.printing import print_json
from headwater.doctor.dropping import DropPlan, drop, plan_drop
from headwater.errors import ManifestNotFound
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.spelled_names import declared_name
from headwater.graph.stored_manifest import stored_manifest


def drop_tables(project: PipelineProject, tables: Sequence[str], *, yes: bool, as_json: bool) -> int:
    """Print what would be removed; with ``yes`` remove it.

    Raises:
        UnknownDataset, RefusedForSafety: nothing was removed.
    """
    plans = _plans(project, tables)
    for plan in plans:
        print(plan, file=sys.stderr)
    if yes:
        drop(project, plans, lambda: _plans(project, tables))
    else:
        print("Nothing was changed. Add --yes to carry it out; the rows can't be recovered.", file=sys.stderr)
    if as_json:
        dropped = [
            {"dataset": p.dataset, "folders": [str(folder) for folder in p.folders], "lost": p.lost}
            for p in plans
        ]
        print_json({"state": "COMPLETED" if yes else "PLANNED", "tables": dropped})
    return 0


def _plans(project: PipelineProject, tables: Sequence[str]) -> list[DropPlan]:
    try:
        manifest = stored_manifest(project)
    except ManifestNotFound:
        manifest = None
    declared = tables if manifest is None else [declared_name(manifest, name) for name in tables]
    names = list(dict.fromkeys(declared))  # a table that is named twice is dropped once
    return [plan_drop(project, manifest, name, names) for name in names]
