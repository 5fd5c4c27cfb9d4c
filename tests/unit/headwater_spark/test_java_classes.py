"""A class of the JVM is looked up once for a connection, by its full name, and nothing in the product asks otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.java_gateway import JavaClass, JavaPackage, JVMView

from headwater_spark.java_classes import OPTION, PYTHON_UTILS, java_class, keep_classes_of_pyspark

JOBS = Path(__file__).resolve().parents[3] / "jobs"
SESSION = "org.apache.spark.sql.classic.SparkSession"


class Connection:
    """What Py4J sends to a JVM that has some classes; any other name is a package there."""

    converters = None
    gateway_property = SimpleNamespace(pool=None)

    def __init__(self, *classes: str) -> None:
        self.classes = classes
        self.sent: list[str] = []

    def send_command(self, command: str) -> str:
        """The answer to a look-up."""
        kind, what, name, member = command.split("\n")[:4]
        assert kind == "r"
        if what == "m":
            self.sent.append(f"{name}.{member}")
            return "ym" if member.islower() else "yi1"
        self.sent.append(name)
        return f"yc{name}" if name in self.classes else "yp"


def view(connection: Any) -> Any:
    """The view of the JVM that Py4J makes for a connection."""
    return JVMView(connection, "default", id="rj")


def test_a_class_is_looked_up_once():
    """By its full name in one question, and never again on the same connection; on another one it is."""
    connection = Connection(OPTION)
    jvm = view(connection)
    first = java_class(jvm, OPTION)
    assert isinstance(first, JavaClass)
    assert first._fqn == OPTION
    assert java_class(jvm, OPTION) is first
    assert connection.sent == [OPTION]
    assert java_class(view(Connection(OPTION)), OPTION) is not first


def test_a_method_is_looked_up_once():
    """A class says once that a name is a method, and Scala's object is one; another field is read each time, for its value may change."""
    connection = Connection(OPTION)
    option = java_class(view(connection), OPTION)
    assert option.apply is option.apply
    assert (option.FIELD, option.FIELD) == (1, 1)
    assert connection.sent[1:] == [f"{OPTION}.apply", f"{OPTION}.FIELD", f"{OPTION}.FIELD"]
    assert (getattr(option, "MODULE$"), getattr(option, "MODULE$")) == (1, 1)
    assert connection.sent[4:] == [f"{OPTION}.MODULE$"]


def test_a_class_that_the_jvm_lacks():
    """What Py4J takes for a package can't be called, is not kept, and is looked up again: a jar may come later."""
    connection = Connection()
    jvm = view(connection)
    missing = java_class(jvm, "com.example.Missing")
    assert isinstance(missing, JavaPackage)
    with pytest.raises(TypeError, match="'JavaPackage' object is not callable"):
        missing()
    connection.classes = ("com.example.Missing",)
    assert isinstance(java_class(jvm, "com.example.Missing"), JavaClass)


def test_names_that_pyspark_looks_up():
    """They stand for the classes that PySpark means, without a question; those that a Spark lacks stay PySpark's affair."""
    connection = Connection(PYTHON_UTILS, "org.apache.spark.sql.functions", SESSION)
    jvm = view(connection)
    keep_classes_of_pyspark(jvm)
    connection.sent.clear()
    assert isinstance(getattr(jvm, SESSION), JavaClass)
    assert (jvm.PythonUtils._fqn, jvm.functions._fqn) == (PYTHON_UTILS, "org.apache.spark.sql.functions")
    assert connection.sent == []
    assert isinstance(jvm.PythonSQLUtils, JavaPackage)
    assert connection.sent == ["PythonSQLUtils"]


def test_names_that_are_taken_package_by_package():
    """The class is there at the end of its packages without a question; other names of the same packages are asked for."""
    connection = Connection("py4j.reflection.TypeUtil", "io.delta.tables.DeltaTable", "io.delta.Other")
    jvm = view(connection)
    keep_classes_of_pyspark(jvm)
    connection.sent.clear()
    assert jvm.py4j.reflection.TypeUtil is java_class(jvm, "py4j.reflection.TypeUtil")
    assert jvm.io.delta.tables.DeltaTable._fqn == "io.delta.tables.DeltaTable"
    assert connection.sent == []
    assert jvm.io.delta.Other._fqn == "io.delta.Other"
    assert isinstance(jvm.org, JavaPackage)
    assert connection.sent == ["io.delta.Other", "org"]


def offences(source: str) -> Iterator[int]:
    """Lines that take a name from a view of the JVM by themselves."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            taken_from: ast.expr = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            taken_from = node.args[0]
        else:
            continue
        name = getattr(taken_from, "attr", getattr(taken_from, "id", ""))
        if name in ("jvm", "_jvm"):
            yield node.lineno


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("jvm.scala.Option", [1]),
        ("x = 1\nsession._jvm.java.lang.Class", [2]),
        ("getattr(spark._jvm, 'scala.Option')", [1]),
        ("java_class(spark._jvm, 'scala.Option')", []),
        ("self._jvm = jvm", []),
    ],
)
def test_what_is_an_offence(source: str, found: list[int]):
    """A walk through packages, and a look-up that is not kept."""
    assert list(offences(source)) == found


def test_nothing_else_looks_classes_up():
    """One place of the product does."""
    paths = [path for path in JOBS.rglob("*.py") if path.name != "java_classes.py"]
    assert len(paths) > 100
    found = [
        f"{path.relative_to(JOBS)}:{line}" for path in paths for line in offences(path.read_text("utf-8"))
    ]
    assert found == []
