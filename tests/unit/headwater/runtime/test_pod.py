"""What the image runs for the commands that Spark gives its pods."""

from __future__ import annotations

import os
import subprocess
import sys

from headwater.runtime.pod import driver_command, executor_command

EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.1.2.3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "shop-exec-1",
    "SPARK_EXECUTOR_MEMORY": "512m",
}


def test_a_driver_is_submitted_once_more_beside_itself():
    """It listens where the pod is reached; what the container was given follows as it is."""
    command = driver_command(["--class", "X", "a b.py"], {"SPARK_DRIVER_BIND_ADDRESS": "10.1.2.3"}, "/spark")
    assert command[0] == "/spark/bin/spark-submit"
    assert "spark.driver.bindAddress=10.1.2.3" in command
    assert command[-5:] == ["--deploy-mode", "client", "--class", "X", "a b.py"]


def test_an_executor_gets_its_options_in_their_order():
    """The tenth is after the second; an option with spaces stays one."""
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dx={number} y" for number in (10, 2, 0)}
    command = executor_command({**EXECUTOR, **options}, "/spark", "/java")
    assert command[:6] == ["/java/bin/java", "-Dx=0 y", "-Dx=2 y", "-Dx=10 y", "-Xms512m", "-Xmx512m"]
    assert command[command.index("-cp") + 1] == "/spark/conf:/spark/jars/*:."
    given = dict(zip(command[-14::2], command[-13::2], strict=True))
    assert given["--driver-url"] == EXECUTOR["SPARK_DRIVER_URL"]
    assert given["--podName"] == "shop-exec-1"
    assert given["--hostname"] == "10.1.2.3"


def test_an_executor_finds_the_folders_that_are_named():
    """Settings of the pod's volume, and classes of the user's before Spark's own."""
    named = {"SPARK_CONF_DIR": "/opt/spark/conf", "SPARK_CLASSPATH": "/mine/*"}
    command = executor_command({**EXECUTOR, **named}, "/spark", "/java")
    assert command[command.index("-cp") + 1] == "/opt/spark/conf:/mine/*:/spark/jars/*:."


def test_any_other_command_is_run_as_it_is():
    """The image is that of Airflow and of Spark's master, too."""
    command = [sys.executable, "-m", "headwater.runtime.pod", "printf", "%s|%s", "a b", "$HOME"]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": "include"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "a b|$HOME"
