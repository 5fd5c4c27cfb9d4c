"""Pipelines of one table over files, for tests of Compose files: the first takes its files one by one, so that it can be killed meanwhile."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.team.containers import Stack

# Files that land for a pipeline at once, and rows of each.
FILES, ROWS = 12, 5
_SPEC = """
name: {name}
schema: shop
configuration: {{landing: /data/landing/{name}}}
spark:
  spark.sql.shuffle.partitions: "1"
  spark.databricks.delta.snapshotPartitions: "1"
  spark.driver.memory: 700m
{spark}airflow: {{dags: [update], {airflow}, retries: 2, retry_delay: 1 second}}
"""
_SOURCE = """
from headwater import pipelines as dp

@dp.table
def {name}():
    read = spark.readStream.schema("id INT").option("maxFilesPerTrigger", {files})
    return read.json(spark.conf.get("landing"))
"""


def land(stack: Stack, name: str, first: int = 0) -> None:
    """Let files arrive for a pipeline, numbered from ``first`` on."""
    landing = stack.volume("data") / "landing" / name
    landing.mkdir(parents=True, exist_ok=True)
    for file in range(first, first + FILES):
        lines = [json.dumps({"id": file * ROWS + row}) for row in range(ROWS)]
        (landing / f"{file:03}.json").write_text("\n".join(lines))


def write_pipelines(stack: Stack, airflow: Mapping[str, str], spark: str = "") -> None:
    """The pipelines with what has landed for them.

    Args:
        stack: the services that run them.
        airflow: by the pipeline's name, a setting of its ``airflow``.
        spark: more lines of the settings of Spark.
    """
    for number, (name, setting) in enumerate(airflow.items()):
        folder = stack.folder / "pipelines" / name
        (folder / "transformations").mkdir(parents=True)
        (folder / "pipeline.yml").write_text(_SPEC.format(name=name, airflow=setting, spark=spark))
        source = _SOURCE.format(name=name, files=1000 if number else 1)
        (folder / "transformations" / "tables.py").write_text(source)
        land(stack, name)
