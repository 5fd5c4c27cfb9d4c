"""Rules about what is written: files, partitions, columns."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from headwater.advice.facts import PipelineFacts, TableFact
from headwater.advice.finding import Advice, Place, Remedy, Setting
from headwater.contract.quantities import size
from headwater.definitions.finding import Severity

# Delta's readers pay for each file; below this one is small.
_SMALL = 16_000_000
_MANY = 30
_TOO_MANY = 500
_FILES_OF_A_COMMIT = 4
_MANY_PARTITIONS = 20
_LARGE_TABLE = 10_000_000_000


def small_files(facts: PipelineFacts) -> Iterator[Advice]:
    """SMALL_FILES: many in the table, or many with each batch."""
    for table in facts.tables:
        each = _files_of_a_commit(table)
        average = table.bytes / table.files if table.files else 0.0
        crowded = average < _SMALL and table.files >= _MANY * max(1, table.partitions)
        if _too_many_partitions(table) or not (crowded or each):
            continue
        untidy = not facts.maintained or not table.managed
        severe = each or untidy or table.files >= _TOO_MANY
        commits = (
            (f"the newest {len(table.commits)} commits added {each:,} files each (median)",) if each else ()
        )
        tidy = () if not crowded or untidy else ("the schedule of maintenance puts them together",)
        yield Advice(
            "SMALL_FILES",
            Severity.WARNING if severe else Severity.INFO,
            table.dataset,
            "",
            "it consists of many small files" if crowded else "each batch writes many small files",
            (f"{table.files:,} files of {size(average)} (mean)", *commits, *tidy),
            tuple(_fewer_files(facts, table, each)),
        )


def output_partitions(facts: PipelineFacts) -> Iterator[Advice]:
    """PARTITIONS_SMALL and LAYOUT_MISSING."""
    for table in facts.tables:
        refresh = (f"headwater run {facts.folder} --full-refresh {table.dataset}",)
        cost = "the table is filled again from all that its source still has"
        if _too_many_partitions(table):
            columns = ", ".join(f'"{name}"' for name in table.partition_columns)
            setting = Setting(Place.DECORATOR, f"cluster_by=[{columns}]", f"partition_cols=[{columns}]")
            yield Advice(
                "PARTITIONS_SMALL",
                Severity.WARNING,
                table.dataset,
                "",
                "its partitions are too small to help a reader",
                (
                    f"{table.partitions:,} partitions by {', '.join(table.partition_columns)}, {size(table.bytes / table.partitions)} each (mean), "
                    f"{table.files:,} files",
                ),
                (Remedy("Cluster by the same columns instead", cost, (setting,), refresh),),
            )  # fmt: skip
        plain = not table.partition_columns and not table.cluster_columns
        if plain and table.bytes >= _LARGE_TABLE and table.columns:
            by = _times(table) or [next(iter(table.columns))]
            setting = Setting(Place.DECORATOR, f'cluster_by=["{by[0]}"]')
            yield Advice(
                "LAYOUT_MISSING", Severity.INFO, table.dataset, "", "it is large and has neither partitions nor clustering",
                (f"{size(table.bytes)} in {table.files:,} files",),
                (Remedy("Cluster by what readers filter by", cost, (setting,), refresh),),
            )  # fmt: skip


def schema_drift(facts: PipelineFacts) -> Iterator[Advice]:
    """SCHEMA_DRIFT: columns came, went or changed in several of the newest updates."""
    for table in facts.tables:
        if len(table.drift) < 2:
            continue
        remedies = []
        if table.cloud_files and table.added_columns:
            hints = ", ".join(f"{name} {kind.upper()}" for name, kind in table.added_columns.items())
            setting = Setting(Place.READ, f'.option("cloudFiles.schemaHints", "{hints}")')
            remedies.append(
                Remedy("Fix the types of columns that came", "a value of another type is rescued", (setting,))
            )
            setting = Setting(Place.READ, '.option("cloudFiles.schemaEvolutionMode", "rescue")')
            cost = "fields that come later stand in _rescued_data, not in columns"
            remedies.append(Remedy("Take no new columns", cost, (setting,)))
        elif table.columns:
            ddl = ", ".join(f"`{name}` {kind.upper()}" for name, kind in table.columns.items())
            setting = Setting(Place.DECORATOR, f'schema="{ddl}"')
            remedies.append(
                Remedy("Pin the columns of the table", "a query with other columns is refused", (setting,))
            )
        yield Advice(
            "SCHEMA_DRIFT", Severity.INFO, table.dataset, "", "its columns keep changing", table.drift[-5:], tuple(remedies)
        )  # fmt: skip


def _fewer_files(facts: PipelineFacts, table: TableFact, each: int) -> Iterator[Remedy]:
    if each and table.merges:
        cores = facts.cores or 8
        setting = Setting(Place.SPEC, f'spark: {{spark.sql.shuffle.partitions: "{cores}"}}')
        commands = (
            (f"headwater run {facts.folder} --full-refresh {table.dataset}",)
            if _stateful(facts, table)
            else ()
        )
        cost = "a large batch has fewer tasks; state keeps its parts until the table is filled again"
        yield Remedy("Merge with fewer tasks", cost, (setting,), commands)
    if each and not table.merges:
        setting = Setting(Place.DECORATOR, 'table_properties={"delta.autoOptimize.optimizeWrite": "true"}')
        yield Remedy(
            "Have the rows of a batch put together before they are written",
            "a shuffle with each batch",
            (setting,),
        )
    if not table.managed:
        setting = Setting(Place.DECORATOR, 'table_properties={"pipelines.autoOptimize.managed": "true"}')
        yield Remedy("Let maintenance rewrite the table", "its files are rewritten at night", (setting,))
    if not facts.maintained and not facts.continuous:
        setting = Setting(Place.SPEC, 'airflow: {maintenance_schedule: "30 3 * * *"}')
        yield Remedy("Schedule maintenance", "its files are rewritten at night", (setting,))
    # A continuous update holds the lease that maintenance needs.
    first = (f"headwater stop {facts.folder}",) if facts.continuous else ()
    command = f"headwater maintenance {facts.folder} --tables {table.dataset} --only optimize --yes"
    cost = f"{table.files:,} files, {size(table.bytes)}, are rewritten; streams that read the table are not woken"
    yield Remedy("Put the files together now", cost, (), (*first, command))


def _stateful(facts: PipelineFacts, table: TableFact) -> bool:
    return any(flow.state_plan for flow in facts.flows if flow.dataset == table.dataset)


def _files_of_a_commit(table: TableFact) -> int:
    """The median of the files that commits added, where they are many for what they hold; else 0."""
    if len(table.commits) < 3:
        return 0
    files = statistics.median(commit.files for commit in table.commits)
    average = statistics.median(
        commit.bytes / commit.files if commit.files else 0.0 for commit in table.commits
    )
    return int(files) if files >= _FILES_OF_A_COMMIT and average < _SMALL else 0


def _too_many_partitions(table: TableFact) -> bool:
    each = table.bytes / table.partitions if table.partitions else 0.0
    return bool(table.partition_columns) and table.partitions >= _MANY_PARTITIONS and each < _SMALL


def _times(table: TableFact) -> list[str]:
    return [name for name, kind in table.columns.items() if kind.lower() in ("date", "timestamp")]
