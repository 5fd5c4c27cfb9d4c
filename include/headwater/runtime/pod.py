"""The entry point of an image for pods of Spark: ``python -m headwater.runtime.pod COMMAND ...``.

Spark starts its pods with ``driver ...`` and ``executor ...``, and leaves it to the image what these are; any other command is run as it is.

Decision 0205.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from headwater.runtime.class_sharing import spark_home
from headwater.runtime.java import java_environment

_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_OPTION = "SPARK_JAVA_OPT_"
# What the executor's program is given, and the variables that Spark sets for it.
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def driver_command(arguments: Sequence[str], environment: Mapping[str, str], spark: str) -> list[str]:
    """What runs in the pod of a driver: ``spark-submit`` once more, now beside the driver.

    Args:
        arguments: those of the container, after ``driver``.
        environment: as Spark's submission made it for the container.
        spark: the folder of Spark in the image.
    """
    address = environment["SPARK_DRIVER_BIND_ADDRESS"]
    return [
        f"{spark}/bin/spark-submit",
        "--conf",
        f"spark.driver.bindAddress={address}",
        "--conf",
        f"spark.executorEnv.SPARK_DRIVER_POD_IP={address}",
        "--deploy-mode",
        "client",
        *arguments,
    ]


def executor_command(environment: Mapping[str, str], spark: str, java: str) -> list[str]:
    """What runs in the pod of an executor.

    Args:
        environment: as the driver made it for the container.
        spark: the folder of Spark in the image.
        java: that of Java.
    """
    numbers = sorted(int(name.removeprefix(_OPTION)) for name in environment if name.startswith(_OPTION))
    folders = (environment.get("SPARK_CONF_DIR", f"{spark}/conf"), environment.get("SPARK_CLASSPATH", ""))
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    return [
        f"{java}/bin/java",
        *(environment[f"{_OPTION}{number}"] for number in numbers),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        ":".join([*filter(None, folders), f"{spark}/jars/*", os.curdir]),
        _BACKEND,
        *(word for option, variable in _ARGUMENTS.items() for word in (option, environment[variable])),
    ]


def main(arguments: Sequence[str]) -> None:
    """Become the program that a pod is to run."""
    if not arguments:
        sys.exit("name a command: `driver` and `executor` are Spark's, any other is run as it is")
    if arguments[:1] not in (["driver"], ["executor"]):
        os.execvp(arguments[0], list(arguments))  # noqa: S606 - what the container was given, without a shell
    spark, variables = str(spark_home()), java_environment()
    environment = {**os.environ, **variables, "SPARK_HOME": spark}
    if arguments[0] == "driver":
        command = driver_command(arguments[1:], environment, spark)
    else:
        command = executor_command(environment, spark, variables["JAVA_HOME"])
    os.execve(command[0], command, environment)  # noqa: S606 - without a shell


if __name__ == "__main__":
    main(sys.argv[1:])
