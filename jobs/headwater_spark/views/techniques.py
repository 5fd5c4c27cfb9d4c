"""The techniques that a refresh may take, in the order of what they cost, and the rows that each one writes.

Decision 0162.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql import functions as F

from headwater.delta_log.file_bounds import Sought, table_files
from headwater.incremental.costs import Effort, Limits
from headwater.incremental.source_changes import ChangeKind, SourceChange
from headwater.incremental.techniques import Issue, IssueType, Technique
from headwater.storage.place import Place
from headwater_spark.plans.partition_texts import without_lost_texts
from headwater_spark.plans.plan_walk import simple_name
from headwater_spark.views.affected_part import by_affected_part
from headwater_spark.views.appended_rows import Merging, appended, grouped
from headwater_spark.views.changed_rows import ChangedRows
from headwater_spark.views.eligibility import mergeable
from headwater_spark.views.examined_query import ExaminedQuery
from headwater_spark.views.key_columns import KeyColumns
from headwater_spark.views.key_conditions import KeyColumn, key_condition, sought_values
from headwater_spark.views.known_rows import KnownRows
from headwater_spark.views.needed_files import NeededFiles, NeededRows
from headwater_spark.views.partition_texts import has_null_partition, stored_alike
from headwater_spark.views.plan_surgery import RowsOf
from headwater_spark.views.recipes import Recipe, Rows, columns_read
from headwater_spark.views.shared_changes import SharedChanges

# From here on it pays that Spark adapts plans while they run: joins, partitions, skew.
LARGE_BYTES = 1_000_000_000
# More touched keys than this are not brought to the driver.
MAX_COLLECTED = 20_000
_ESCAPES_OFF = "spark.sql.parser.escapedStringLiterals"


@dataclass(frozen=True)
class Increment:
    """What an incremental refresh writes.

    Args:
        rows: what is appended, merged, or put in the place of the rows that meet the condition; None: nothing changes.
        condition: SQL text over the view's columns.
        merging: how columns of groups are merged.
        sought: the values of columns that rows which meet the condition have, as far as files can be chosen by them.
        effort: what it moves, where that is known.
    """

    technique: Technique
    rows: DataFrame | None
    condition: str | None = None
    merging: Sequence[tuple[str, Merging]] = ()
    sought: Sequence[Sought] = ()
    effort: Effort | None = None


class Techniques:
    """What can be done for one refresh.

    Args:
        query: the view's.
        changes: what happened to each table, by its key.
        table: the view's folder.
        stored: the types of the view's columns as the table has them, as Spark prints them.
        partitions: the columns that the view is partitioned by; ``sorted_by``: those that its rows are sorted into files by.
        shared: what is known of changed rows from other views of the update.
    """

    def __init__(
        self,
        query: ExaminedQuery,
        changes: Mapping[str, SourceChange],
        table: Place,
        stored: Mapping[str, str],
        partitions: Collection[str],
        sorted_by: Collection[str],
        limits: Limits,
        shared: SharedChanges | None = None,
    ) -> None:
        self._query = query
        self._shared = shared or SharedChanges()
        self._known_rows: dict[int, KnownRows | None] = {}
        self._plan = query.plan
        self._changes = changes
        self._table = table
        self._partitions = {name.lower() for name in partitions}
        self._limits = limits
        self._changed = [
            number
            for number, (key, _) in query.tables.items()
            if changes[key].kind is not ChangeKind.UNCHANGED
        ]
        # A table that the query itself reads several times is looked into once as well.
        self._own = SharedChanges()
        self._own.expect(
            Counter(query.tables[number][1].folder for number in self._changed),
            frozenset(name for number in self._changed for name in query.columns[number]),
        )
        fields = query.plan.frame.schema.fields
        # Keys become SQL texts with escapes.
        texts_fail = str(query.plan.session.conf.get(_ESCAPES_OFF, "false")).lower() == "true"
        self._types = [
            field.dataType.simpleString()
            if stored.get(field.name.lower()) == field.dataType.simpleString()
            and not (texts_fail and field.dataType.simpleString() == "string")
            else "another in the table"
            for field in fields
        ]
        self._names = [field.name for field in fields]
        self._sorted_by = {name.lower() for name in sorted_by}
        self._keys = self._key_columns()

    def choose(self, *, judged: bool) -> Technique | Issue:
        """The technique that is the least work, before anything is read.

        Args:
            judged: the view has rules: whole groups have to be judged then, not what is added to them.
        """
        only = self._changed[0] if len(self._changed) == 1 else None
        if only is not None and self._changes[self._query.tables[only][0]].kind is ChangeKind.APPENDED:
            if appended(self._plan.root, only) is not None:
                return Technique.APPEND_ONLY
            if not judged and self._merging(only):
                return Technique.GROUP_AGGREGATE
        return by_affected_part(self._keys, self._limits)

    @property
    def changed(self) -> set[str]:
        """The tables that changed, by their keys, without those that were left out."""
        return {self._query.tables[number][0] for number in self._changed}

    def leave_out_unchanged(self) -> bool:
        """Take reads of which no row is another in the columns that are used for unchanged; whether there were any beside others.

        A change of a dimension in a column that the view does not use need not keep it from taking in the new rows of a fact.
        """
        left = [number for number in self._changed if not self._is_empty(number)]
        if not left or len(left) == len(self._changed):
            return False
        self._changed = left
        self._keys = self._key_columns()
        return True

    @property
    def shares_look(self) -> bool:
        """Whether the rows that changed are looked for once for several views."""
        return all(self._shared.is_shared(self._query.tables[number][1].folder) for number in self._changed)

    def come_to_nothing(self) -> bool:
        """Whether no row is another in the columns that the view uses; False as well where the view would have to look itself."""
        known = [self._known(number) for number in self._changed]
        return bool(known) and all(one is not None and len(one) == 0 for one in known)

    def increment(self, technique: Technique) -> Increment | Issue:
        """What the technique writes; an affected part is looked for by one Spark job."""
        leaf = self._changed[0]
        if sum(change.bytes for change in self._changes.values()) > LARGE_BYTES:
            self._plan.adapt()
        if technique is Technique.APPEND_ONLY:
            recipe = appended(self._plan.root, leaf)
            assert recipe is not None
            return Increment(
                technique, self._named(self._plan.frame_of(recipe, self._plan.root.output, self._new_rows))
            )
        if technique is Technique.GROUP_AGGREGATE:
            groups = grouped(self._plan.root, leaf)
            assert groups is not None
            rows = self._named(self._plan.frame_of(groups.recipe, self._plan.root.output, self._new_rows))
            return Increment(
                technique, without_lost_texts(rows, self._partition_texts), merging=self._merging(leaf)
            )
        return self._affected(technique)

    def _key_columns(self) -> KeyColumns:
        root = self._plan.root
        return KeyColumns(root, self._changed, self._types, self._names, self._partitions, self._sorted_by)

    def _merging(self, leaf: int) -> Sequence[tuple[str, Merging]]:
        """How each column is merged; empty where groups can't be."""
        groups = grouped(self._plan.root, leaf)
        if groups is None or len(set(self._names)) < len(self._names):
            return ()
        if (texts := self._partition_texts) and has_null_partition(self._table, texts):
            return ()  # it may be of a text that is stored so: two groups that can't be told apart
        if not mergeable(groups, self._types):
            return ()
        return list(zip(self._names, groups.columns, strict=True))

    @property
    def _partition_texts(self) -> list[str]:
        """The columns that the view is partitioned by of which its table has some texts as NULL."""
        return [
            name
            for name, kind in zip(self._names, self._types, strict=True)
            if kind == "string" and name.lower() in self._partitions
        ]

    # -- affected keys -------------------------------------------------------------------------------------------

    def _affected(self, technique: Technique) -> Increment | Issue:
        places = self._keys.chosen()
        touched = self._touched_keys(places)
        if len(touched) > MAX_COLLECTED and len(places) > 1:
            places = places[:1]
            touched = self._touched_keys(places)
        if not touched:
            return Increment(Technique.NO_OP, None)
        columns = self._columns(places)
        touched = stored_alike(touched, [self._names[place] in self._partition_texts for place in places])
        known = (
            key_condition(columns, touched, self._limits.max_keys) if len(touched) <= MAX_COLLECTED else None
        )
        if known is None:
            return self._no_condition(columns, len(touched))
        condition, named = known
        whole_partitions = {name.lower() for name in named} <= self._partitions
        leaves = {number: leaf for number, (_, leaf) in self._query.tables.items()}
        needed = NeededFiles(self._plan, leaves, self._names).chosen(condition)
        if needed.read > LARGE_BYTES:
            self._plan.adapt()
        sought = sought_values(columns, touched, named, self._limits.max_keys)
        return Increment(
            Technique.PARTITION_OVERWRITE if whole_partitions else technique,
            needed.rows,
            condition,
            sought=sought,
            effort=self._effort(needed, sought, len(touched)),
        )

    def _no_condition(self, columns: Sequence[KeyColumn], touched: int) -> Issue:
        """Why the affected part can't be named."""
        names = ", ".join(column.name for column in columns)
        most = MAX_COLLECTED if touched > MAX_COLLECTED else self._limits.max_keys
        if touched > most:
            return Issue(
                IssueType.INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL,
                f"rows with more than {most:,} different values of {names} are affected",
                "CHANGESET_SIZE_THRESHOLD_EXCEEDED",
            )
        reason = f"the affected rows have values of {names} that no condition can name"
        return Issue(IssueType.PLAN_NOT_INCREMENTALIZABLE, reason, "OPERATOR_NOT_SUPPORTED")

    def _effort(self, needed: NeededRows, sought: Sequence[Sought], keys: int) -> Effort:
        stored = table_files(self._table, None, {one.column for one in sought}) or ()
        rewritten = sum(file.bytes for file in stored if file.may_have(sought))
        # A view has at least a row for each key, so that this is about the part that is touched; of a range, it may be all.
        rows = sum(file.records or 0 for file in stored)
        listed = keys <= self._limits.max_keys and rows > 0
        selected = min(1.0, keys / rows) if listed else 1.0
        every = sum(file.bytes for file in stored)
        return Effort(needed.read, needed.sources, rewritten, every, selected)

    def _columns(self, places: Sequence[int]) -> list[KeyColumn]:
        return [KeyColumn(self._names[place], self._types[place]) for place in places]

    def _touched_keys(self, places: Sequence[int]) -> list[tuple[object, ...]]:
        """The values that these columns have in rows that may differ; not more than one above what is collected."""
        ids = [self._plan.root.output[place] for place in places]
        collected = [
            F.expr(KeyColumn(f"k{number}", column.type).collected)
            for number, column in enumerate(self._columns(places))
        ]
        names = [f"k{number}" for number in range(len(ids))]
        frames = [
            self._plan.frame_of(answer.recipe, ids, self._rows_for(answer.recipe, ids))
            .toDF(*names)
            .select(*collected)
            for leaf, answer in zip(self._changed, self._keys.traced(places), strict=True)
            if not self._is_empty(leaf)
        ]
        keys: dict[tuple[object, ...], None] = {}
        others: list[DataFrame] = []
        for frame in frames:
            if self._is_local(frame):
                keys |= dict.fromkeys(map(tuple, frame.collect()))
            else:
                others.append(frame)
        if others:
            together = reduce(DataFrame.union, others)
            # As Arrow, for which a limit is a stage of the same job; `collect` tries one partition after the other.
            table = together.distinct().limit(MAX_COLLECTED + 1).toArrow()
            keys |= dict.fromkeys(zip(*(column.to_pylist() for column in table.columns), strict=True))
        return list(keys)

    def _is_local(self, frame: DataFrame) -> bool:
        """Whether Spark has the rows of a frame as soon as it has planned it: no job is needed for them."""
        if all(self._known_rows.get(number) is None for number in self._changed):
            return False
        return simple_name(frame._jdf.queryExecution().optimizedPlan()) == "LocalRelation"  # noqa: SLF001

    def _is_empty(self, number: int) -> bool:
        known = self._known(number)
        return known is not None and len(known) == 0

    def _known(self, number: int) -> KnownRows | None:
        """The changed rows of a leaf, where they are known to several views."""
        if number not in self._known_rows:
            key, leaf = self._query.tables[number]
            shared = self._shared if self._shared.is_shared(leaf.folder) else self._own
            self._known_rows[number] = shared.rows(
                self._plan.working, leaf, self._changes[key], self._query.columns[number]
            )
        return self._known_rows[number]

    def _rows_for(self, recipe: Recipe, ids: Sequence[int]) -> RowsOf:
        """What gives the rows of leaves to a recipe that is read for the columns with these ids."""
        read = columns_read(recipe, {node.number: node for node in self._plan.root.walk()}) | frozenset(ids)
        return partial(self._rows, read=read)

    def _rows(self, number: int, rows: Rows, read: frozenset[int]) -> DataFrame:
        """The rows of a leaf that changed, or that are there or were; of what changed, the columns that are read."""
        key, leaf = self._query.tables[number]
        changed = ChangedRows(
            self._plan.working, leaf, self._changes[key], self._query.columns[number], self._known(number)
        )
        if rows is Rows.EVER:
            now = DataFrameReader(self._plan.working).format("delta").option("versionAsOf", str(leaf.version))
            return changed.ever(now.load(str(leaf.folder)))
        own = next(node for node in self._plan.root.leaves if node.number == number)
        return changed.touched({one.name for one in own.exprs("output") if one.id in read})

    def _new_rows(self, number: int, _: Rows) -> DataFrame:
        """The rows that came to a leaf that only grew, each as often as it came."""
        key, leaf = self._query.tables[number]
        return ChangedRows(self._plan.working, leaf, self._changes[key], self._query.columns[number]).added()

    def _named(self, rows: DataFrame) -> DataFrame:
        return rows.toDF(*self._names)
