"""``backfill``: what can be checked without Spark is checked at once, then Spark's process takes over."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from headwater.commands.run import become_program
from headwater.contract.backfill_arguments import backfill_arguments
from headwater.graph.manifest import FILE_NAME, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.required_sources import required_sources
from headwater.graph.spelled_names import known_name


def backfill(project: PipelineProject, parsed: argparse.Namespace, argv: Sequence[str]) -> int:
    """Check the arguments and become the job; ``argv``: what stands behind the verb on the command line.

    Raises:
        UsageError, InvalidRange, UnknownDataset, InvalidParameter: the arguments make no sense.
        InvalidPipeline: there are no sources.
    """
    arguments = backfill_arguments(parsed)
    project.check_parameters()
    required_sources(project)
    manifest = read_manifest(project.state_folder / FILE_NAME)
    if manifest is not None and manifest.fits(project):
        known_tables(manifest, arguments.tables)
    become_program("run_backfill.py", list(argv))
    return 1


def known_tables(manifest: Manifest, tables: Sequence[str]) -> list[str]:
    """The tables as the manifest spells them; raises UnknownDataset with the nearest name."""
    known = [entry.name for entry in manifest.tables]
    return [known_name(manifest, name, known, "table") for name in tables]
