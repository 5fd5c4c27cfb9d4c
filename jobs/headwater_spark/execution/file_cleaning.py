"""cleanSource: files that were taken in long enough ago are deleted or moved away."""

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
    """Clean up behind a flow that is done; what can't be cleaned now is tried again by the next update."""
    for read in run.context.pipeline.evaluation.cloud.reads_of(run.name):
        if read.options.clean == "off":
            continue
        history = ingested_files(run.context.pipeline.project.state_folder, run.dataset.name, run.name)
        done = clean_read(read, history, now=datetime.now(UTC))
        if done:
            verb = "deleted" if read.options.clean == "delete" else "moved"
            run.context.say(f"{run.name}: {len(done)} files that were taken in are {verb}", flow=run.name)


def clean_read(read: CloudRead, history: list[IngestedFile], *, now: datetime) -> list[str]:
    """Delete or move the files of a read that were committed longer ago than it retains them; returns their paths.

    A file that was written again since it was taken in stays.
    """
    destination = move_destination(read) if read.options.clean == "move" else None
    committed = {
        file.path: file for file in history
        if file.ingested_at is not None and now - file.ingested_at >= read.options.retention
    }  # fmt: skip
    root = Path(read.path)
    done = []
    for file in listed(read.path, read.options):
        known = committed.get(file.path)
        if known is None or file.modified_ns // 1_000_000 > known.modified_ms:
            continue
        try:
            if destination is None:
                Path(file.path).unlink()
            else:
                inside = Path(file.path)
                inside = inside.relative_to(root) if inside.is_relative_to(root) else Path(inside.name)
                _move(Path(file.path), destination / inside)
        except OSError:
            continue
        done.append(file.path)
    return done


def move_destination(read: CloudRead) -> Path:
    """Where files are moved; raises InvalidSourceOption where they would be read again from there."""
    destination = Path(str(read.options.move_to).removeprefix("file://"))
    root = Path(read.path.removeprefix("file://"))
    if root in (destination, *destination.parents):
        raise InvalidSourceOption(
            f"cloudFiles.cleanSource.moveDestination = {destination} lies in the folder that is read.",
            remedy="Move files to a folder outside of it.",
        )
    return destination


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        target = target.with_name(f"{target.stem}-{time.time_ns()}{target.suffix}")
    shutil.move(source, target)
