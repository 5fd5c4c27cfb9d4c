"""Secrets among Spark's settings reach Spark, and neither a command line, nor its event log, nor a plan."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from tests.pipeline_case import SECRET

from headwater.runtime.java import java_environment
from headwater.runtime.submit import command_line_conf, submit_conf

((ACCOUNT, CANARY),) = SECRET.items()
SCRIPT = """
import json, pathlib, sys
from headwater_spark.session import start_session
spark = start_session("canary", json.loads(pathlib.Path(sys.argv[1]).read_text()))
seen = spark._jsc.hadoopConfiguration().get("fs.azure.account.key.lake.dfs.core.windows.net")
frame = spark.readStream.format("rate").option("awsSecretKey", seen).option("rowsPerSecond", "1").load()
plan = frame._jdf.queryExecution().toString()
spark.read.format("csv").schema("a int").option("awsSecretKey", seen).option("header", "true").load(sys.argv[2]).collect()
lines = [path.read_bytes().replace(b"\\0", b" ").decode() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")
         if pathlib.Path("/proc/self").resolve().name in path.read_text() or b"spark" in path.read_bytes()]
print("\\n" + json.dumps({"seen": seen, "plan": plan, "java": [line for line in lines if "SparkSubmit" in line],
                  "leaks": [line for line in lines if seen in line], "rounds": spark.conf.get("spark.sql.shuffle.partitions")}))
spark.stop()
"""


def test_of_a_session_that_starts_java(spark: SparkSession):
    """The session of these tests has a key: Hadoop knows it, no process shows it, and plans hide it."""
    assert spark._jsc.hadoopConfiguration().get(ACCOUNT.removeprefix("spark.hadoop.")) == CANARY
    java = Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}/cmdline")
    assert "SparkSubmit" in java.read_text()
    shown = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            shown.append(path.read_bytes())
    assert not [line for line in shown if CANARY.encode() in line]
    rows = spark.readStream.format("rate").option("awsSecretKey", CANARY).option("rowsPerSecond", "1").load()
    plan = rows._jdf.queryExecution().toString()
    assert "(redacted)" in plan
    assert CANARY not in plan


def test_of_a_driver_that_is_submitted(tmp_path: Path):
    """Hadoop has the key; no process shows it, and Spark's event log and plans hide it."""
    (tmp_path / "data.csv").write_text("a\n1\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "events").mkdir()
    conf = {
        ACCOUNT: CANARY,
        "spark.master": "local[1]",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        "spark.sql.shuffle.partitions": "3",
    }
    (tmp_path / "conf.json").write_text(json.dumps(conf))
    program = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]"]
    for name, value in command_line_conf(submit_conf(conf)).items():
        program += ["--conf", f"{name}={value}"]
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [*program, str(tmp_path / "script.py"), str(tmp_path / "conf.json"), str(tmp_path / "data.csv")],
        env={**os.environ, **java_environment(), "PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    assert answer["seen"] == CANARY
    assert answer["java"]
    assert answer["leaks"] == []
    assert answer["rounds"] == "3"
    assert "(redacted)" in answer["plan"]
    assert CANARY not in answer["plan"]
    logged = "".join(path.read_text() for path in (tmp_path / "events").rglob("*") if path.is_file())
    assert "SparkListenerApplicationStart" in logged
    assert ACCOUNT in logged
    assert CANARY not in logged
    assert CANARY not in done.stderr
