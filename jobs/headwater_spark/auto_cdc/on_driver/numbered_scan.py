"""Reads rows of a table that may have deletion vectors: those that are not deleted, each with its number in its file.

Arrow's own scan of a whole table knows neither vectors nor row numbers. Files are read by their row groups here, in order.

Decision 0208.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from headwater.delta_log.deletion_vectors import UnreadableVector, deleted_rows
from headwater.delta_log.file_entries import file_entries
from headwater.storage.delta_tables import delta_options
from headwater.storage.place import Place
from headwater_spark.auto_cdc.change_columns import OWN
from headwater_spark.delta_writes.file_rewrite import DataFile

_ROW = f"{OWN}row"
# Files are read at the same time: on a store, each is a few requests one after the other.
_AT_ONCE = 8
NOT_IN_THE_LOG = "the log does not show a file's entry"
NOT_READ_HERE = "a deletion vector is not of a kind that is read here"


@dataclass(frozen=True)
class NumberedRows:
    """Rows as Arrow; for each its file's path, and its number in the file; the files by path."""

    rows: Any
    file_of: list[str]
    row_in_file: Any
    files: Mapping[str, DataFile]


@dataclass(frozen=True)
class _Scan:
    """What is read of each file: ``columns`` of the rows that meet ``condition``; ``form``: the table's Arrow schema."""

    place: Place
    form: Any
    filesystem: Any
    parquet: Any
    condition: Any
    columns: Sequence[str]

    def rows(self, file: DataFile) -> Any:
        """The rows of a file, with ``_ROW``; raises UnreadableVector, also where it has another number of rows than the log says."""
        import pyarrow as pa

        whole = self.parquet.make_fragment(file.path, self.filesystem)
        groups = whole.row_groups
        count = sum(group.num_rows for group in groups)
        if count != file.rows + file.deleted:
            raise UnreadableVector(f"{file.path} has another number of rows than the log says")
        vector = (file.entry or {}).get("deletionVector")
        deleted = None if vector is None else deleted_rows(self.place, vector, count)
        may_match = {group.id for group in whole.subset(filter=self.condition, schema=self.form).row_groups}
        parts, first = [self._empty()], 0
        for group in groups:
            if group.id in may_match:
                parts += self._of_group(whole.subset(row_group_ids=[group.id]), first, deleted)
            first += group.num_rows
        return pa.concat_tables(parts)

    def _of_group(self, group: Any, first: int, deleted: Any) -> list[Any]:
        """The rows of a row group, whose first row has the number ``first`` in the file."""
        import pyarrow as pa
        from pyarrow import compute

        parts = []
        for batch in group.to_batches(schema=self.form, columns=list(self.columns)):
            numbers = pa.array(range(first, first + batch.num_rows), pa.int64())
            rows = pa.Table.from_batches([batch]).append_column(_ROW, numbers)
            if deleted is not None:
                rows = rows.filter(compute.invert(deleted.slice(first, batch.num_rows)))
            parts.append(rows.filter(self.condition))
            first += batch.num_rows
        return parts

    def _empty(self) -> Any:
        import pyarrow as pa

        fields = [self.form.field(name) for name in self.columns]
        return pa.schema([*fields, pa.field(_ROW, pa.int64())]).empty_table()


def scan_numbered(
    place: Place,
    log: Any,
    candidates: Any,
    condition: Any,
    sought: Sequence[str],
    columns: Sequence[str] | None,
) -> NumberedRows | str:
    """The rows of some of a table's files that meet a condition.

    Args:
        log: the table as delta-rs has it.
        candidates: Arrow rows, one a file: path, size_bytes, modification_time, num_records. Paths are plain ones.
        condition: an Arrow expression over the columns ``sought``.
        columns: the columns to return; None for all.

    Returns:
        a reason where Spark has to read them: the log does not lead back to a file, or a vector is of an uncommon kind.
    """
    files = _files(place, log, candidates)
    if isinstance(files, str):
        return files
    scan = _scan(place, log, files, condition, sought, columns)
    try:
        with ThreadPoolExecutor(_AT_ONCE, "headwater-scan") as pool:
            parts = list(pool.map(scan.rows, files))
    except UnreadableVector:
        return NOT_READ_HERE
    return _joined(scan, files, parts, columns)


def _files(place: Place, log: Any, candidates: Any) -> list[DataFile] | str:
    names = ("path", "size_bytes", "modification_time", "num_records")
    listed = list(zip(*(candidates[name].to_pylist() for name in names), strict=True))
    entries = file_entries(place, log.version(), {path for path, *_ in listed})
    files = []
    for path, size, modified, records in listed:
        entry = entries.get(path)
        if entry is None or entry["size"] != size:
            return NOT_IN_THE_LOG
        deleted = int((entry.get("deletionVector") or {}).get("cardinality", 0))
        files.append(DataFile(path, size, modified, records - deleted, deleted, entry))
    return files


def _scan(
    place: Place, log: Any, files: Sequence[DataFile], condition: Any, sought: Sequence[str], columns: Sequence[str] | None
) -> _Scan:  # fmt: skip
    import pyarrow as pa
    from deltalake.fs import DeltaStorageHandler
    from pyarrow import dataset, fs

    form = pa.schema(log.schema().to_arrow())
    sizes = {file.path: file.size for file in files}
    filesystem = fs.PyFileSystem(DeltaStorageHandler(log.table_uri, delta_options(place), sizes))
    # Spark writes times as INT96, which Arrow reads as nanoseconds by default: these end in 2262.
    options = dataset.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    needed = form.names if columns is None else [n for n in form.names if n in {*columns, *sought}]
    return _Scan(place, form, filesystem, dataset.ParquetFileFormat(read_options=options), condition, needed)


def _joined(
    scan: _Scan, files: Sequence[DataFile], parts: Sequence[Any], columns: Sequence[str] | None
) -> NumberedRows:
    import pyarrow as pa

    names = [name for name in scan.columns if columns is None or name in columns]
    together = pa.concat_tables([scan._empty(), *parts])  # noqa: SLF001
    return NumberedRows(
        together.select(names),
        [file.path for file, part in zip(files, parts, strict=True) for _ in range(part.num_rows)],
        together[_ROW].combine_chunks(),
        {file.path: file for file, part in zip(files, parts, strict=True) if part.num_rows},
    )
