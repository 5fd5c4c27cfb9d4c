"""Maintenance that needs Spark: tables with features that delta-rs does not write, and those too large for one process."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark.sql import SparkSession

from headwater.contract.maintenance_arguments import maintenance_options
from headwater.contract.maintenance_report import finish, tell
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import stored_manifest
from headwater.maintenance.chore import Engine
from headwater.maintenance.maintain import maintain
from headwater.maintenance.maintenance_plan import chores
from headwater.storage.place import Place
from headwater_spark.plans.names import quoted
from headwater_spark.session import start_session


def answer(project: PipelineProject, parsed: argparse.Namespace) -> int:
    """Do the steps that are Spark's, and report; raises MaintenanceFailed where one failed."""
    planned = chores(project, stored_manifest(project), maintenance_options(parsed))
    spark = start_session(f"headwater-{project.pipeline_id}-maintenance", project.spark_conf)
    outcomes = maintain(
        project,
        planned,
        engine=Engine.SPARK,
        rewrite=lambda table, columns: optimize(spark, table, columns),
        wait=parsed.wait,
        tell=tell,
    )
    finish(outcomes, as_json=parsed.as_json)
    return 0


def optimize(spark: SparkSession, table: Place, z_order: Sequence[str]) -> str:
    """Compact a table's small files; by its clustering columns if it has any, else by ``z_order`` if any."""
    columns = ", ".join(quoted(name) for name in z_order)
    order = f" ZORDER BY ({columns})" if columns else ""
    row = spark.sql(f"OPTIMIZE delta.`{table}`{order}").select("metrics.*").collect()[0]
    return f"{row['numFilesRemoved']} files became {row['numFilesAdded']}"
