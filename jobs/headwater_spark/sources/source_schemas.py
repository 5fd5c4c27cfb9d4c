"""Schema drift of a stream's sources: the columns that a flow has read so far, the current ones, and what to do about it.

Delta would silently add a source's new columns to the table, and fill a removed one with NULL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headwater.definitions.flow import Flow
from headwater.errors import SourceSchemaChanged
from headwater_spark.plans.plan_walk import class_name, items, pair_of, plan_leaves
from headwater_spark.sources.rescued_columns import OPTION

Columns = Mapping[str, str]
# The query's own result, recorded with its sources: a change that does not reach it does not matter.
OUTPUT = "output"


@dataclass(frozen=True)
class SchemaChange:
    """How columns differ: names added and removed, and names with their types before and now."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    retyped: tuple[tuple[str, str, str], ...]
    renamed: tuple[tuple[str, str], ...]

    @classmethod
    def between(cls, before: Columns, now: Columns) -> SchemaChange:
        """The difference; one removed column and one added of the same type count as a rename."""
        added = [name for name in now if name not in before]
        removed = [name for name in before if name not in now]
        renamed: list[tuple[str, str]] = []
        if len(added) == len(removed) == 1 and before[removed[0]] == now[added[0]]:
            renamed, added, removed = [(removed[0], added[0])], [], []
        retyped = [
            (name, before[name], now[name]) for name in before if now.get(name, before[name]) != before[name]
        ]
        return cls(tuple(added), tuple(removed), tuple(retyped), tuple(renamed))

    @property
    def only_adds(self) -> bool:
        """Whether all previous columns still exist."""
        return not (self.removed or self.retyped or self.renamed)

    def __str__(self) -> str:
        parts = [f"added {name}" for name in self.added]
        parts += [f"removed {name}" for name in self.removed]
        parts += [f"renamed {old} to {new}" for old, new in self.renamed]
        parts += [f"changed {name} from {old} to {new}" for name, old, new in self.retyped]
        return ", ".join(parts)


@dataclass(frozen=True)
class StreamSchemas:
    """Columns (name to type) by source, and of the result under ``OUTPUT``.

    ``evolving``: the sources whose additions are taken (``mergeSchema``). ``pinned``: those whose columns stay what they were
    (``rescuedDataColumn``).
    """

    columns: Mapping[str, Columns]
    evolving: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()

    def to_remember(self, before: Mapping[str, Columns]) -> dict[str, Columns]:
        """The columns to record for the next start."""
        return {**self.columns, **{source: before[source] for source in self.pinned if source in before}}


def stream_schemas(frame: DataFrame, own_tables: set[str]) -> StreamSchemas:
    """The columns of the query's streaming tables and of its result.

    Args:
        frame: the flow's query over its real sources.
        own_tables: paths of the pipeline's own tables: their columns change with the pipeline's code, on purpose.

    """
    columns: dict[str, Columns] = {OUTPUT: _columns(frame.schema)}
    merging: set[str] = set()
    rescuing: set[str] = set()
    for path, options, schema in streaming_leaves(frame):
        if path in own_tables:
            continue
        columns[path] = _columns(schema)
        if options.get("mergeschema", "").lower() == "true":
            merging.add(path)
        if OPTION in options:
            rescuing.add(path)
    return StreamSchemas(columns, frozenset(merging), frozenset(rescuing))


def check_source_schemas(flow: Flow, before: Mapping[str, Columns], current: StreamSchemas) -> None:
    """Raise SourceSchemaChanged where a change of a source's columns would change the result and was not requested."""
    now = current.columns
    if OUTPUT not in before or before[OUTPUT] == now[OUTPUT]:
        return
    for source, columns in now.items():
        if source == OUTPUT or source not in before or source in current.pinned or before[source] == columns:
            continue
        change = SchemaChange.between(before[source], columns)
        if change.only_adds and source in current.evolving:
            continue
        raise SourceSchemaChanged(
            f"The source of {flow.name!r} has other columns than before: {change}.",
            where=f"{flow.location}, reading {source}",
            remedy=_ways_out(flow, change),
        )


def _ways_out(flow: Flow, change: SchemaChange) -> str:
    ways = []
    if change.only_adds:
        ways.append('take new columns as they come, with .option("mergeSchema", "true") on the read')
        ways.append("leave them out, by naming the columns in .select(...)")
    ways.append(
        'keep the columns as they are and all else as JSON, with .option("rescuedDataColumn", "_rescued_data") on the read'
    )
    ways += [f'keep the old name, with .withColumnRenamed("{new}", "{old}")' for old, new in change.renamed]
    ways += [
        f'keep the old type, with .withColumn("{name}", F.col("{name}").try_cast("{old}"))'
        for name, old, _ in change.retyped
    ]
    ways += [f'keep the column, with .withColumn("{name}", F.lit(None))' for name in change.removed]
    ways.append(f"or refill the table: headwater run PIPELINE_DIR --full-refresh {flow.target}")
    return "Choose: " + "; ".join(ways) + "."


def streaming_leaves(frame: DataFrame) -> Iterator[tuple[str, dict[str, str], StructType]]:
    """The streams that a query reads from a folder and whose columns are not given: folder, options, columns."""
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - the plan has no public face in Python
    for leaf in plan_leaves(plan):
        if not class_name(leaf).endswith(".StreamingRelation"):
            continue
        source = leaf.dataSource()
        pairs = (pair_of(pair) for pair in items(source.options().toSeq()))
        options = {key.lower(): value for key, value in pairs}
        # Files with a schema of the user's: only the user changes it.
        if "path" in options and not source.userSpecifiedSchema().isDefined():
            yield options["path"].removeprefix("file:"), options, _schema(leaf)


def _schema(leaf: Any) -> StructType:
    return StructType.fromJson(json.loads(leaf.schema().json()))


def _columns(schema: StructType) -> Columns:
    return {field.name: field.dataType.simpleString() for field in schema.fields}
