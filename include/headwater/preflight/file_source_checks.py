"""Streams from files: whether a planned batch still has its files, and whether Spark will read each file once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headwater.checkpoints.conditions import SourceFileNames, SourceFilesGone
from headwater.checkpoints.offsets import files_seen, read_offsets
from headwater.definitions.source import SourceKind
from headwater.errors import CheckpointUnreadable, SourceUnreachable
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.storage.conditions import STORE_ERRORS
from headwater.storage.place import is_s3

# What makes a path a pattern to Hadoop.
_SIGNS = frozenset("{}[]*?\\")


def planned_files_are_gone(start: FlowStart) -> Iterator[Damage]:
    """A planned batch is repeated with the files that it names; Spark fails halfway where one is gone."""
    batch = max(start.planned, default=None)
    if batch is None or batch in start.committed or start.sources is None:
        return
    if start.written is not None and start.written >= batch:
        return
    for index, source in enumerate(start.sources):
        if source.kind is not SourceKind.FILES or source.on("ignoreMissingFiles"):
            continue
        try:
            begin, end = last_entry(start, batch - 1, index), last_entry(start, batch, index)
            named = [seen for seen in files_seen(start.folder, index, up_to=end) if seen.batch_id > begin]
        except CheckpointUnreadable:
            return  # the checks of the logs report it
        missing = _missing([seen.path for seen in named], source)
        if missing:
            yield Damage(
                SourceFilesGone(
                    f"Files of batch {batch} of {start.flow!r}, which is planned and not done, are gone from {source.name!r}: "
                    f"{len(missing)} of {len(named)}.",
                    where=missing[0],
                    remedy="Put the files back; or take all files that are older than a point in time as read, and go on with the "
                    f"others: {start.command('new-epoch')} --from-time TIME",
                ),
                tuple(missing[:10]),
                (Repair.NEW_EPOCH, Repair.FULL_REFRESH),
            )


def _missing(paths: list[str], source: StreamSource) -> list[str]:
    """Those that are not there; in S3 one listing says so of nearly all, and only what it lacks is looked for."""
    gone = [path for path in paths if path.startswith("/") and not Path(path).exists()]
    stored = [path for path in paths if is_s3(path)]
    try:
        listed = set(source.files()) if stored and source.files is not None else set()
        return gone + [path for path in stored if path not in listed and not source.place(path).is_file()]
    except (SourceUnreachable, *STORE_ERRORS):
        return gone  # what can't be listed is reported by the read itself


def names_are_patterns(start: FlowStart) -> Iterator[Damage]:
    """Spark 4.2 expands a path that looks like a pattern over the whole batch: its other files are read twice."""
    for index, source in enumerate(start.sources or ()):
        if source.files is None or _one_a_batch(source):
            continue
        try:
            odd = [path for path in source.files() if not _SIGNS.isdisjoint(path)]
            done = last_entry(start, max(start.committed, default=-1), index) if odd else -1
            read = {seen.path for seen in files_seen(start.folder, index, up_to=done)} if odd else set()
        except (CheckpointUnreadable, SourceUnreachable, *STORE_ERRORS, OSError):
            continue  # reported elsewhere: by the checks of the logs, and by Spark
        new = sorted(set(odd) - read)
        if new:
            yield Damage(
                SourceFileNames(
                    f"The names of {len(new)} new files of {source.name!r} have one of the characters {{ }} [ ] * ? \\. To Spark such "
                    "a name is a pattern, and it would read the other files of the batch twice.",
                    where=new[0],
                    remedy='Rename them; or read file by file: .option("maxFilesPerTrigger", 1).',
                ),
                tuple(new[:10]),
            )


def _one_a_batch(source: StreamSource) -> bool:
    options = {key.lower().removeprefix("cloudfiles."): value for key, value in source.options.items()}
    return options.get("maxfilespertrigger") == "1"


def last_entry(start: FlowStart, batch: int, index: int) -> int:
    """The last entry of the source's own log that a batch has taken in, -1 for none."""
    if batch not in start.planned:
        return -1
    position: Any = read_offsets(start.folder, batch).source(index)
    return int(position["logOffset"]) if isinstance(position, dict) and "logOffset" in position else -1
