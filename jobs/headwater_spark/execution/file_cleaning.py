"""cleanSource: delete or move files that were ingested long enough ago."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import InvalidSourceOption
from headwater.metrics.file_history import IngestedFile, ingested_files
from headwater_spark.sources.cloud_files.new_files import listed

if TYPE_CHECKING:
    from headwater_spark.execution.flow_run import FlowRun
    from headwater_spark.sources.cloud_files.source import CloudRead


def clean_sources(run: FlowRun) -> None:
    """Clean the sources of a flow that is done; what can't be cleaned now is retried by the next update."""
    for read in run.context.pipeline.evaluation.cloud.reads_of(run.name):
        if read.options.clean == "off":
            continue
        history = ingested_files(run.context.pipeline.project.state_folder, run.dataset.name, run.name)
        cleaned = clean_read(read, history, now=datetime.now(UTC))
        if cleaned:
            verb = "deleted" if read.options.clean == "delete" else "moved"
            run.context.say(f"{run.name}: {len(cleaned)} ingested files were {verb}", flow=run.name)


def clean_read(read: CloudRead, history: list[IngestedFile], *, now: datetime) -> list[str]:
    """Delete or move the files of a read that were ingested longer ago than its retention; returns their paths.

    A file that was modified since then stays.
    """
    destination = move_destination(read) if read.options.clean == "move" else None
    committed = {
        file.path: file for file in history
        if file.ingested_at is not None and now - file.ingested_at >= read.options.retention
    }  # fmt: skip
    root = Path(read.path)
    cleaned = []
    for file in listed(read.path, read.options):
        ingested = committed.get(file.path)
        if ingested is None or file.modified_ns // 1_000_000 > ingested.modified_ms:
            continue
        try:
            if destination is None:
                Path(file.path).unlink()
            else:
                path = Path(file.path)
                relative = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
                _move(path, destination / relative)
        except OSError:
            continue
        cleaned.append(file.path)
    return cleaned


def move_destination(read: CloudRead) -> Path:
    """Where files are moved; raises InvalidSourceOption where they would be read again there."""
    destination = Path(str(read.options.move_to).removeprefix("file://"))
    root = Path(read.path.removeprefix("file://"))
    if root in (destination, *destination.parents):
        raise InvalidSourceOption(
            f"cloudFiles.cleanSource.moveDestination = {destination} is inside the folder that is read.",
            remedy="Move files to a folder outside of it.",
        )
    return destination


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        target = target.with_name(f"{target.stem}-{time.time_ns()}{target.suffix}")
    shutil.move(source, target)
