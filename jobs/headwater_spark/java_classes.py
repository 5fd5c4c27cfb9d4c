"""Classes of the JVM, looked up once for each connection to it.

Py4J asks the JVM each time for each part of a name. A part that is no class by itself (a package, a short name that
PySpark has imported) is searched in every jar of the class path, a dozen times over. For an error of Java's, PySpark does so
for up to fourteen classes that it may be of; and each Java collection that Python goes through ends with such an error.

Decision 0195.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage

PYTHON_UTILS = "org.apache.spark.api.python.PythonUtils"
OPTION = "scala.Option"
# Among Spark's own jars; of use where it is there.
CLASS_UTILS = "org.apache.commons.lang3.ClassUtils"
# What PySpark calls for every column, query, function and batch; some by names that have to be searched.
_SHORT_NAMES = {
    "functions": "org.apache.spark.sql.functions",
    "PythonErrorUtils": "org.apache.spark.api.python.PythonErrorUtils",
    "PythonForeachBatchHelper": "org.apache.spark.sql.execution.streaming.sources.PythonForeachBatchHelper",
    "PythonRDD": "org.apache.spark.api.python.PythonRDD",
    "PythonSQLUtils": "org.apache.spark.sql.api.python.PythonSQLUtils",
    "PythonUtils": PYTHON_UTILS,
    "SerDeUtil": "org.apache.spark.api.python.SerDeUtil",
    "SimplePythonFunction": "org.apache.spark.api.python.SimplePythonFunction",
    "SparkConf": "org.apache.spark.SparkConf",
}
_FULL_NAMES = (
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.classic.SparkSession$",
    "org.apache.spark.sql.internal.SQLConf",
    "org.apache.spark.sql.streaming.Trigger",
)
# What PySpark, Py4J and Delta take from the view package by package.
_BY_PACKAGES = (
    "io.delta.tables.DeltaTable",
    "java.util.HashMap",
    "org.apache.spark.util.Utils",
    "py4j.reflection.TypeUtil",
)


# The field in which Scala has an object, which is made once.
_SCALA_OBJECT = "MODULE$"


class _KeptClass(JavaClass):  # type: ignore[misc]  # Py4J has no types
    """A class that asks the JVM once which of its names is a method, and for the object of Scala that it has."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember) or name == _SCALA_OBJECT:
            self.__dict__[name] = member
        return member


def java_class(jvm: Any, name: str) -> Any:
    """A class of the JVM.

    Args:
        jvm: the view of the JVM that a session has.
        name: the class's full name; ``$`` before the name of a class within another, and behind that of a Scala object.

    Returns:
        The class. Where the JVM has none of the name, what Py4J makes of it: a package, which raises ``TypeError`` when called.
    """
    known = vars(jvm)
    if name not in known:
        answer = getattr(jvm, name)
        if not isinstance(answer, JavaClass):
            return answer
        known[name] = _KeptClass(answer._fqn, jvm._gateway_client)  # noqa: SLF001 - a class is made for a connection
    return known[name]


def keep_classes_of_pyspark(jvm: Any) -> None:
    """Let PySpark's own look-ups be answered without the JVM; a class that this Spark lacks is left to PySpark."""
    for name in _FULL_NAMES:
        java_class(jvm, name)
    for short, name in _SHORT_NAMES.items():
        answer = java_class(jvm, name)
        if isinstance(answer, JavaClass):
            vars(jvm)[short] = answer
    for name in _BY_PACKAGES:
        _keep_along_its_packages(jvm, name)


def _keep_along_its_packages(jvm: Any, name: str) -> None:
    answer = java_class(jvm, name)
    if not isinstance(answer, JavaClass):
        return
    *packages, short = name.split(".")
    names = vars(jvm)
    for depth, package in enumerate(packages, start=1):
        if package not in names:
            names[package] = JavaPackage(".".join(packages[:depth]), jvm._gateway_client, jvm._id)  # noqa: SLF001 - as above
        names = vars(names[package])
    names[short] = answer
