"""The Spark side of ``headwater events --sql``: statements in, the rows of the last query out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from headwater.contract.printing import print_json, print_table
from headwater.definitions.dataset_name import DatasetName
from headwater.errors import InvalidName, QueryFailed
from headwater.event_log.event import event_table
from headwater.graph.manifest import FILE_NAME, DatasetEntry, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import stored_manifest
from headwater.metrics.file_states import Row, file_states
from headwater_spark.facade.event_log_text import EventLogText
from headwater_spark.facade.queries_only import check_query
from headwater_spark.java_classes import java_class
from headwater_spark.messages.source_errors import describe
from headwater_spark.plans.plan_walk import items
from headwater_spark.session import start_session

# The view of the pipeline's own log that examples on the web use.
RAW = "event_log_raw"


def answer_query(project: PipelineProject, sql: str, limit: int, *, as_json: bool) -> int:
    """Run statements over event logs and print the rows of the last one, at most ``limit``. Raises NotAQuery, QueryFailed."""
    frame = run_statements(start_session(f"{project.pipeline_id} events", project.spark_conf), project, sql)
    columns = frame.columns if frame is not None else []
    rows = [list(row) for row in frame.limit(limit).collect()] if frame is not None else []
    if as_json:
        print_json({"pipeline_id": project.pipeline_id, "columns": columns, "rows": rows})
    else:
        print_table(f"{project.pipeline_id}: event log", columns, rows)
    return 0


def run_statements(spark: SparkSession, project: PipelineProject, sql: str) -> DataFrame | None:
    """Run one or several statements; returns the frame of the last one that is a query.

    Raises:
        NotAQuery: one of them would change something; none was run.
        QueryFailed: Spark can't run one.
    """
    log = event_table(project.state_folder)

    def files(reference: str) -> list[Row]:
        entry = _own_table(project, reference)
        return file_states(
            project.state_folder, stored_manifest(project), reference if entry is None else entry.name
        )

    text = EventLogText(spark, project.state_folder, lambda name: _own_table(project, name), files)
    if (log / "_delta_log").is_dir():
        spark.read.format("delta").load(str(log)).createOrReplaceTempView(RAW)
    frame = None
    statements = split_statements(spark, sql)
    for statement in statements:
        with _named(statement):
            check_query(spark, text.rewrite(statement))
    for statement in statements:
        with _named(statement):
            result = spark.sql(text.rewrite(statement))
        frame = result if result.columns else frame
    return frame


@contextmanager
def _named(statement: str) -> Iterator[None]:
    """Say in which statement Spark saw an error."""
    try:
        yield
    except (AnalysisException, ParseException) as error:
        raise QueryFailed(
            f"The query failed: {describe(error)}",
            where=statement.strip().splitlines()[0][:100],
            remedy="It is SQL of open Spark, with event_log(...), cloud_files_state(...) and paths like details:flow_progress.status.",
        ) from None


def split_statements(spark: SparkSession, sql: str) -> list[str]:
    """Statements, split as Spark's own shell does it: semicolons in texts and comments do not count."""
    splitter = java_class(spark._jvm, "org.apache.spark.sql.catalyst.util.StringUtils")  # noqa: SLF001
    parts = splitter.splitSemiColonWithIndex(sql, False)
    return [str(part) for part in items(parts) if str(part).strip()]


def _own_table(project: PipelineProject, name: str) -> DatasetEntry | None:
    manifest = read_manifest(project.state_folder / FILE_NAME)
    if manifest is None:
        return None
    catalog, schema = manifest.catalog, manifest.schema_name
    try:
        full_name = DatasetName.parse(name, catalog=catalog, schema=schema).display(
            catalog=catalog, schema=schema
        )
    except InvalidName:
        return None
    return next((entry for entry in manifest.datasets if entry.name.lower() == full_name.lower()), None)
