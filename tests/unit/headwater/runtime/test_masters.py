"""What Spark is told where its executors run on other machines."""

import sys

import pytest

from headwater.runtime import submit
from headwater.runtime.masters import is_local, python_settings

CLUSTERS = ("spark://one:7077,two:7077", "yarn", "k8s://https://api:6443")


@pytest.mark.parametrize("master", CLUSTERS)
def test_this_pythons_path_stays_on_this_machine(master: str):
    """Executors run the Python that the pipeline names, else the one on their PATH; only the driver runs this one."""
    named = python_settings(master, "/opt/python/bin/python")
    assert named["spark.pyspark.python"] == "/opt/python/bin/python"
    assert named["spark.pyspark.driver.python"] == sys.executable
    assert python_settings(master, None)["spark.pyspark.python"] == "python3"


@pytest.mark.parametrize("master", ["", "local", "local[*]", "local-cluster[2,1,512]"])
def test_one_machine_has_one_python(master: str):
    """`cluster.python` has no effect there: the same pipeline.yml runs on a laptop."""
    assert is_local(master)
    assert python_settings(master, "/opt/python/bin/python") == {}


@pytest.mark.parametrize("local", [True, False])
def test_every_master_has_few_partitions_of_a_snapshot_and_no_progress_bar(
    local: bool, monkeypatch: pytest.MonkeyPatch
):
    """A thousand idle tasks an update, and bars in the log, are no better on a cluster; the tuned JVM is for one machine."""
    monkeypatch.setattr(submit, "ensure_jars", lambda _: ())
    conf = submit.submit_conf({}, local=local)
    assert conf["spark.databricks.delta.snapshotPartitions"] == "2"
    assert conf["spark.ui.showConsoleProgress"] == "false"
    assert ("TieredStopAtLevel" in conf["spark.driver.extraJavaOptions"]) is local
    assert ("spark.driver.bindAddress" in conf) is local
    assert (
        submit.submit_conf({"spark.databricks.delta.snapshotPartitions": "9"}, local=local)[
            "spark.databricks.delta.snapshotPartitions"
        ]
        == "9"
    )
