"""The class of a JVM object is one call to the JVM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.java_gateway import JavaObject, JVMView
from pyspark import SparkContext

from headwater_spark.java_classes import CLASS_UTILS
from headwater_spark.plans.plan_walk import class_name, descends_from, simple_name

PROJECT = "org.apache.spark.sql.catalyst.plans.logical.Project"


class Connection:
    """What Py4J sends to a JVM with some classes, in which every object is a Project."""

    converters, address, port = None, "here", 1
    gateway_property = SimpleNamespace(pool=None, auto_field=False, enable_memory_management=False)

    def __init__(self, *classes: str) -> None:
        self.classes = classes
        self.sent: list[str] = []

    def send_command(self, command: str) -> str:
        """The answer: a class, a method of one, an object, or a name."""
        kind, what, name, *_ = command.split("\n")
        if kind == "r":
            return "ym" if what == "m" else f"yc{name}" if name in self.classes else "yp"
        self.sent.append(f"{what} {name}")
        return "yro9" if name == "getClass" else f"ys{PROJECT}"


def plan(connection: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An object of a JVM that a session is connected with."""
    monkeypatch.setattr(SparkContext, "_jvm", JVMView(connection, "default", id="rj"))
    return JavaObject("o1", connection)


def test_one_call(monkeypatch: pytest.MonkeyPatch):
    """The JVM is asked for the name alone, with no object of the class; so it is for a class's own name among those that it extends."""
    connection = Connection(CLASS_UTILS)
    node = plan(connection, monkeypatch)
    assert (class_name(node), simple_name(node)) == (PROJECT, "Project")
    assert descends_from(node, "Project")
    assert connection.sent == [f"z:{CLASS_UTILS} getName"] * 3


def test_a_spark_without_that_class(monkeypatch: pytest.MonkeyPatch):
    """The object is asked for its class, and that for its name; so it is where no session is there."""
    connection = Connection()
    node = plan(connection, monkeypatch)
    assert class_name(node) == PROJECT
    assert connection.sent == ["o1 getClass", "o9 getName"]
    monkeypatch.setattr(SparkContext, "_jvm", None)
    own = SimpleNamespace(getName=lambda: PROJECT)
    assert class_name(SimpleNamespace(getClass=lambda: own)) == PROJECT
