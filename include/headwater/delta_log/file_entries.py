"""The entries of a table's data files in its log, with all that the log says of them: statistics, deletion vectors, tags.

Decision 0208.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from headwater.delta_log.commits import Action, commit_file, log_folder
from headwater.files.json_lines import byte_lines
from headwater.storage.place import Place
from headwater.storage.walking import readable

# A checkpoint of one file, or of several: the version, the number of the part, the number of parts.
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
# What an entry in a commit may have; a checkpoint has it again in other forms.
_FIELDS = {
    "path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags", "deletionVector", "baseRowId",
    "defaultRowCommitVersion", "clusteringProvider",
}  # fmt: skip
_MAPS = ("partitionValues", "tags")


def file_entries(table: Place, version: int, paths: Collection[str]) -> dict[str, Action]:
    """The ``add`` actions of some of the files that a version of a table has, from the commits back to the last checkpoint.

    Args:
        table: the table's folder.
        version: of the table.
        paths: as the log has them.

    Returns:
        by path; a file is missing where the log does not go back to it, or only in a form of checkpoints not read here.

    Raises:
        OSError: the log can't be read.
        ValueError: it is damaged.
    """
    entries: dict[str, Action] = {}
    checkpoint, parts = _last_checkpoint(table, version)
    for number in range(version, checkpoint, -1):
        if len(entries) == len(set(paths)):
            return entries
        try:
            # The newest entry of a file counts.
            entries = {**_of_commit(commit_file(table, number), paths), **entries}
        except FileNotFoundError:
            return entries
    missing = set(paths) - set(entries)
    for part in parts if missing else []:
        entries |= _of_checkpoint(part, missing)
    return entries


def _last_checkpoint(table: Place, version: int) -> tuple[int, list[Place]]:
    """The newest whole checkpoint up to a version, -1 where there is none; its files."""
    checkpoints: dict[tuple[int, int], list[Place]] = {}
    for file in log_folder(table).iterdir():
        name = _CHECKPOINT.fullmatch(file.name)
        if name is not None and int(name[1]) <= version:
            checkpoints.setdefault((int(name[1]), int(name[3] or 1)), []).append(file)
    whole = {of: files for (of, parts), files in checkpoints.items() if len(files) == parts}
    newest = max(whole, default=-1)
    return newest, whole.get(newest, [])


def _of_commit(file: Place, paths: Collection[str]) -> dict[str, Action]:
    entries = {}
    for line in byte_lines(file):
        if b'"add"' in line:
            entry = json.loads(line).get("add")
            if entry is not None and entry["path"] in paths:
                entries[entry["path"]] = entry
    return entries


def _of_checkpoint(file: Place, paths: Collection[str]) -> dict[str, Action]:
    import pyarrow as pa
    from pyarrow import compute, parquet

    actions = parquet.ParquetFile(readable(file)).read(columns=["add"])["add"].combine_chunks()
    is_wanted = compute.is_in(compute.struct_field(actions, "path"), pa.array(sorted(paths), pa.string()))
    return {row["path"]: _as_in_a_commit(row) for row in actions.filter(is_wanted).to_pylist()}


def _as_in_a_commit(row: dict[str, Any]) -> Action:
    entry = {name: value for name, value in row.items() if name in _FIELDS and value is not None}
    for name in _MAPS:
        if name in entry:
            entry[name] = dict(entry[name])
    if "deletionVector" in entry:
        vector = entry["deletionVector"]
        entry["deletionVector"] = {name: value for name, value in vector.items() if value is not None}
    return entry
