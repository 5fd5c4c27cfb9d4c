"""Fewer, larger files, and rows beside those they are read with: compaction, z-order, liquid clustering.

The rows stay the same, and the commit says so (``dataChange`` is false): no stream and no reader of changes sees it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.delta_log.commits import commit_file, commit_info, data_files, read_actions
from headwater.delta_log.kept_values import values_kept
from headwater.delta_log.listed_files import listed_files
from headwater.maintenance.chore import ChoreKind, Engine, Finding, LeftOut, Rewriter, Step
from headwater.storage.delta_tables import delta_table, table_log
from headwater.storage.place import Place

if TYPE_CHECKING:
    from deltalake import DeltaTable

Z_ORDER_PROPERTY = "pipelines.autooptimize.zordercols"
MANAGED_PROPERTY = "pipelines.autooptimize.managed"
# Features that delta-rs preserves (tested); a table with any other feature is left to Spark.
_DELTA_RS_KEEPS = {
    "appendOnly",
    "invariants",
    "changeDataFeed",
    "generatedColumns",
    "deletionVectors",
    "v2Checkpoint",
}
_PLAIN_WRITER_VERSION = 4
# More than this is not rewritten in the process that asks (an Airflow worker's): Spark spills, and has settings for it.
_MOST_BYTES_HERE = 1 << 30
_TARGET_BYTES = 128 << 20
# Two small files do no harm, and each rewrite costs.
_MANY_SMALL_FILES = 4
_MARK = "headwater.zOrderBy"
_MOST_COMMITS_BACK = 1000


@dataclass(frozen=True)
class Optimize:
    """The layout of one table's files. ``properties``: as the pipeline declares them."""

    subject: str
    table: Place
    properties: Mapping[str, str]
    kind: ChoreKind = ChoreKind.OPTIMIZE

    def look(self) -> Finding:
        """Say what is to be rewritten, if anything."""
        if not is_managed(self.properties):
            why = "The table's property pipelines.autoOptimize.managed is false."
            return LeftOut(self.kind, self.subject, why)
        opened = table_log(self.table)
        files = _files(opened)
        features = set(opened.protocol().writer_features or ())
        if "clustering" in features:
            return self._rewritten(opened, files, "cluster by the declared columns", by=None)
        z_order = declared_order(self.properties)
        if not z_order:
            return self._compacted(opened, files)
        columns, why_not = _z_order_columns(opened, z_order)
        if why_not:
            return LeftOut(self.kind, self.subject, why_not)
        return self._rewritten(opened, files, f"z-order by {', '.join(columns)}", by=columns)

    def carry_out(self, step: Step, rewrite: Rewriter | None) -> str:
        """Rewrite the files; raises deltalake's CommitFailedError where another writer was in the way."""
        from deltalake import CommitProperties, PostCommitHookProperties

        opened = open_table(self.table)
        z_order = declared_order(self.properties)
        columns = _z_order_columns(opened, z_order)[0] if z_order else []
        if step.engine is Engine.SPARK:
            assert rewrite is not None, "steps of Spark are carried out by its driver"
            return rewrite(self.table, columns)
        # The log is not cleaned in passing: a reader may need it.
        hooks = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
        if columns:
            mark = CommitProperties(custom_metadata={_MARK: json.dumps(columns)})
            done = opened.optimize.z_order(
                columns, target_size=_TARGET_BYTES, post_commithook_properties=hooks, commit_properties=mark
            )
        else:
            done = opened.optimize.compact(target_size=_TARGET_BYTES, post_commithook_properties=hooks)
        return f"{done['numFilesRemoved']} files became {done['numFilesAdded']}"

    def _compacted(self, opened: DeltaTable, files: Sequence[_File]) -> Finding:
        small = [file for file in files if file.bytes < _TARGET_BYTES]
        each = Counter(file.partition for file in small)
        crowded = [file for file in small if each[file.partition] >= _MANY_SMALL_FILES]
        if not crowded:
            return None
        what = f"put {len(crowded)} small files together into {_count(len({f.partition for f in crowded}))}"
        return self._step(opened, crowded, what)

    def _rewritten(
        self, opened: DeltaTable, files: Sequence[_File], what: str, *, by: list[str] | None
    ) -> Finding:
        each = Counter(file.partition for file in files)
        if max(each.values(), default=0) < 2 or not _changed_since_rewrite(self.table, opened.version(), by):
            return None
        return self._step(opened, files, what)

    def _step(self, opened: DeltaTable, files: Sequence[_File], what: str) -> Step:
        size = sum(file.bytes for file in files)
        rows = [file.rows for file in files if file.rows is not None]
        here = size <= _MOST_BYTES_HERE and delta_rs_may_write(opened) and values_kept(opened)
        engine = Engine.HERE if here else Engine.SPARK
        count = sum(rows) if len(rows) == len(files) else None
        return Step(self.kind, self.subject, what, len(files), size, count, engine)


@dataclass(frozen=True)
class _File:
    partition: tuple[str, ...]
    bytes: int
    rows: int | None


def is_managed(properties: Mapping[str, str]) -> bool:
    """Whether a table of these properties has its files laid out by maintenance."""
    return _lowered(properties).get(MANAGED_PROPERTY, "true").lower() != "false"


def declared_order(properties: Mapping[str, str]) -> list[str]:
    """The columns of the z-order that a table's properties name."""
    return [
        name.strip() for name in _lowered(properties).get(Z_ORDER_PROPERTY, "").split(",") if name.strip()
    ]


def _lowered(properties: Mapping[str, str]) -> dict[str, str]:
    return {key.lower(): value for key, value in properties.items()}


def open_table(table: Place) -> DeltaTable:
    """The table at its newest version."""
    return delta_table(table)


def _files(opened: DeltaTable) -> list[_File]:
    rows = listed_files(opened)
    partitions = [name for name in (rows[0] if rows else {}) if name.startswith("partition.")]
    return [
        _File(tuple(str(r[name]) for name in partitions), int(r["size_bytes"]), r["num_records"])
        for r in rows
    ]


def delta_rs_may_write(opened: DeltaTable) -> bool:
    """Whether all features of the table are among those that delta-rs keeps."""
    protocol = opened.protocol()
    if protocol.writer_features is None:
        return protocol.min_writer_version <= _PLAIN_WRITER_VERSION
    return set(protocol.writer_features) <= _DELTA_RS_KEEPS


def _z_order_columns(opened: DeltaTable, z_order: Sequence[str]) -> tuple[list[str], str | None]:
    """The columns as the table spells them, without those of its partitions; or why there is no such order."""
    spellings = {field.name.lower(): field.name for field in opened.schema().fields}
    missing = [name for name in z_order if name.lower() not in spellings]
    if missing:
        return (
            [],
            f"pipelines.autoOptimize.zOrderCols names {missing[0]!r}, and the table has no such column.",
        )
    partitions = {name.lower() for name in opened.metadata().partition_columns}
    columns = [spellings[name.lower()] for name in z_order if name.lower() not in partitions]
    return columns, None if columns else "All columns of pipelines.autoOptimize.zOrderCols are partitions."


def _changed_since_rewrite(table: Place, head: int, columns: list[str] | None) -> bool:
    """Whether rows came or went since the files were last ordered in this way, as far back as the log reaches."""
    for version in range(head, max(-1, head - _MOST_COMMITS_BACK), -1):
        try:
            info, changes = _commit(commit_file(table, version))
        except FileNotFoundError:
            return True
        if changes:
            return True
        if info.get("operation") == "OPTIMIZE" and _order(info) == columns:
            return False
    return True


def _commit(path: Place) -> tuple[dict[str, Any], bool]:
    actions = read_actions(path)
    return commit_info(actions), any(data_files(actions, kind) for kind in ("add", "remove"))


def _order(info: Mapping[str, Any]) -> list[str] | None:
    """The columns of a z-order; None for a plain OPTIMIZE, which is what clusters."""
    text = info.get(_MARK) or info.get("operationParameters", {}).get("zOrderBy") or "[]"
    return list(json.loads(text)) or None


def _count(partitions: int) -> str:
    return "larger ones" if partitions == 1 else f"larger ones, in {partitions} partitions"
