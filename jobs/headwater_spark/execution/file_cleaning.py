"""cleanSource: delete or move files that were ingested long enough ago."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headwater.errors import InvalidSourceOption, SourceUnreachable
from headwater.metrics.file_history import IngestedFile, ingested_files
from headwater.metrics.file_listing import ListedFile
from headwater.storage.conditions import STORE_ERRORS
from headwater.storage.globs import plain_part
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place, is_below, is_s3, parts_below, place_of
from headwater.storage.walking import copy_file
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
    root = place_of(plain_part(read.path) if is_s3(read.path) else read.path)
    cleaned = []
    try:
        files = listed(read.path, read.options)
    except SourceUnreachable:
        if not is_s3(read.path):
            raise
        return []  # a prefix without objects is not there: all of them were cleaned before
    for file in files:
        ingested = committed.get(file.path)
        if ingested is None or file.modified_ns // 1_000_000 > ingested.modified_ms:
            continue
        path = place_of(file.path)
        try:
            if isinstance(path, ObjectPath) and not _is_still(path, file):
                continue
            if destination is None:
                path.unlink()
            else:
                names = parts_below(path, root) if is_below(path, root) else (path.name,)
                _move(path, destination / "/".join(names))
        except (OSError, *STORE_ERRORS):
            continue
        cleaned.append(file.path)
    return cleaned


def move_destination(read: CloudRead) -> Place:
    """Where files are moved; raises InvalidSourceOption where they would be read again, or where it is on another kind of storage."""
    destination = place_of(str(read.options.move_to).removeprefix("file://"))
    root = place_of(plain_part(read.path) if is_s3(read.path) else read.path.removeprefix("file://"))
    if isinstance(destination, ObjectPath) != isinstance(root, ObjectPath):
        raise InvalidSourceOption(
            f"cloudFiles.cleanSource.moveDestination = {destination} is on another kind of storage than {read.path}.",
            remedy="Move files from a folder into a folder, or from s3:// into s3://.",
        )
    if is_below(destination, root):
        raise InvalidSourceOption(
            f"cloudFiles.cleanSource.moveDestination = {destination} is inside the folder that is read.",
            remedy="Move files to a folder outside of it.",
        )
    return destination


def _is_still(path: ObjectPath, file: ListedFile) -> bool:
    """Whether an object is the one that was listed, and not one that was written under its name since."""
    state = path.stat()
    return state.st_size == file.size and int(state.st_mtime) == file.modified_ns // 1_000_000_000


def _move(source: Place, target: Place) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        target = target.with_name(f"{target.stem}-{time.time_ns()}{target.suffix}")
    if isinstance(source, ObjectPath) and isinstance(target, ObjectPath):
        copy_file(source, target)
        source.unlink(missing_ok=True)
    else:
        shutil.move(str(source), str(target))
