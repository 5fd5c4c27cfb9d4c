"""Which settings a pipeline's session has: those of its spec, of the store that its roots lie in, and of the cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import InvalidSpec
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.runtime.conditions import UnsafeStoreSetting
from headwater.runtime.object_store import needs_s3

SPEC = """
name: shop
object_store: {endpoint: "http://127.0.0.1:9000", region: eu-west-1}
cluster: {python: /opt/python3}
spark: {spark.sql.shuffle.partitions: 3}
"""


def opened(folder: Path, spec: str) -> PipelineProject:
    """A pipeline of this spec."""
    (folder / "pipeline.yml").write_text(spec)
    return open_project(folder, storage=str(folder / "storage"), warehouse=str(folder / "warehouse"))


def test_on_disk_and_one_machine_they_are_the_specs(tmp_path: Path):
    """What is said of a store and of a cluster has no effect there: the same file serves a laptop."""
    assert opened(tmp_path, SPEC).spark_conf == {"spark.sql.shuffle.partitions": "3"}


def test_a_root_on_a_store_brings_its_settings(tmp_path: Path):
    """Either root does; the pipeline's own settings stay."""
    project = opened(tmp_path, SPEC)
    warehouse: Any = "s3://bucket/tables"
    conf = replace(project, warehouse=warehouse).spark_conf
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert conf["spark.hadoop.fs.s3a.endpoint.region"] == "eu-west-1"
    assert conf["spark.sql.shuffle.partitions"] == "3"


def test_a_setting_that_would_lose_commits_is_refused(tmp_path: Path):
    """Before a session is started; where tables are on disk it means nothing."""
    project = opened(
        tmp_path, SPEC.replace("partitions: 3}", "partitions: 3, spark.hadoop.fs.s3a.performance.flags: '*'}")
    )
    assert project.spark_conf
    storage: Any = "s3://bucket/storage"
    with pytest.raises(UnsafeStoreSetting, match=r"performance\.flags"):
        _ = replace(project, storage=storage).spark_conf


def test_a_cluster_brings_its_python(tmp_path: Path):
    """Of the master that the spec names, or that the caller does."""
    assert opened(tmp_path, SPEC).spark_conf_on("spark://one:7077")["spark.pyspark.python"] == "/opt/python3"
    named = opened(
        tmp_path, SPEC.replace("partitions: 3}", "partitions: 3, spark.master: 'spark://one:7077'}")
    )
    assert named.spark_conf["spark.pyspark.python"] == "/opt/python3"
    assert "spark.pyspark.python" not in named.spark_conf_on("local[2]")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("spark: {spark.submit.deployMode: cluster}", "no cluster mode for Python programs"),
        ("cluster: {python: ''}", "python"),
        ("cluster: {python: /opt/my python}", "python"),
        ("cluster: {pyhton: /opt/python}", "Did you mean `python`"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, line: str, says: str):
    """With the file and the line."""
    with pytest.raises(InvalidSpec, match=says):
        opened(tmp_path, f"name: shop\n{line}\n")


@pytest.mark.parametrize(
    ("source", "spec"),
    [
        ('f"s3://{bucket}/landing"', ""),
        ("r's3://raw/landing'", ""),
        ("# nothing", "configuration: {landing: 's3://raw/landing'}"),
        ("# nothing", "parameters: {landing: {type: string, default: 's3://raw/landing'}}"),
        ("# nothing", "SOURCES"),
    ],
)
def test_a_source_on_s3_brings_its_settings(tmp_path: Path, source: str, spec: str):
    """Its address is seen before the source runs, or the spec says that there is one; checkpoints in folders stay Spark's."""
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "tables.py").write_text(f"path = {source}\n")
    text = SPEC.replace("{endpoint", "{sources: true, endpoint") if spec == "SOURCES" else SPEC + spec + "\n"
    conf = opened(tmp_path, text).spark_conf
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert needs_s3(conf)
    assert "spark.sql.streaming.checkpointFileManagerClass" not in conf


@pytest.mark.parametrize(
    "source", ["# s3://raw/landing", "'the s3 of ours'", "'s3a://raw/landing'", "'gs://raw'"]
)
def test_what_only_speaks_of_s3_brings_nothing(tmp_path: Path, source: str):
    """A comment is no address, and another spelling or store is refused when it is read."""
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "tables.py").write_text(f"path = {source}\n")
    assert not needs_s3(opened(tmp_path, SPEC).spark_conf)


def test_the_value_of_a_run_brings_it_too(tmp_path: Path):
    """A parameter that is given for this run may be an address."""
    project = replace(opened(tmp_path, SPEC), parameters={"landing": "s3://raw/landing"})
    assert needs_s3(project.spark_conf)


def test_another_client_of_s3_is_left_alone(tmp_path: Path):
    """Who names a class for s3:// and only reads there has brought its jars; nothing of ours is mixed into it."""
    own = SPEC.replace("partitions: 3}", "partitions: 3, spark.hadoop.fs.s3.impl: com.example.FileSystem}")
    project = replace(opened(tmp_path, own), parameters={"landing": "s3://raw/landing"})
    assert project.spark_conf == {
        "spark.sql.shuffle.partitions": "3",
        "spark.hadoop.fs.s3.impl": "com.example.FileSystem",
    }
