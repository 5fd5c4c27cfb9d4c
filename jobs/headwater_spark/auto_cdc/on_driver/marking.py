"""Decides, for each file with rows to change, whether it is written again or its old rows are only marked as deleted.

To mark is cheaper the more rows of a file stay. But marked rows are read until the file is written again, and the rows that
take their place make files of their own. So files that have no more rows than the batch changes are written again, by which
those of earlier batches grow together, and files of which much is marked.

Decision 0208.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from headwater_spark.delta_writes.file_rewrite import DataFile, Marks

# A file of which more than one in so many rows would be marked is written again.
_MARKED_AT_MOST = 4


def split_files(
    files: Mapping[str, DataFile], changed: Mapping[str, Sequence[int]], changes: int
) -> tuple[list[DataFile], list[Marks]]:
    """The files to write again, and the marks of the others.

    Args:
        files: the files with rows to change, by path.
        changed: for each of them the numbers of the rows that are updated or deleted.
        changes: how many rows the whole batch inserts, updates and deletes.
    """
    marks = [Marks(files[path], rows) for path, rows in changed.items() if is_marked(files[path], len(rows), changes)]  # fmt: skip
    marked = {mark.file.path for mark in marks}
    return [files[path] for path in changed if path not in marked], marks


def is_marked(file: DataFile, changed: int, changes: int) -> bool:
    """Whether rows of a file are marked; the file is written again otherwise. ``changed``: how many of its rows change."""
    if changed == file.rows:
        return True  # it goes as a whole, and nothing is read
    if not _is_counted(file):
        return False
    marked, all_rows = file.deleted + changed, file.rows + file.deleted
    return file.rows > changes and marked * _MARKED_AT_MOST <= all_rows


def _is_counted(file: DataFile) -> bool:
    """Whether the file's entry says how many rows there are, as it must where there is a vector."""
    statistics = (file.entry or {}).get("stats")
    return bool(statistics) and "numRecords" in json.loads(str(statistics))
