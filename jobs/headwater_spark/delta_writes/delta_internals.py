"""Delta's internal classes: how to notice that the installed version has different ones from those called here."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from headwater_spark.java_classes import java_class

_LOG = logging.getLogger("headwater.delta")
# Where Delta's internals live.
DELTA = "org.apache.spark.sql.delta"
# What the JVM throws where a class, method or field that was compiled against is missing.
_LINKAGE = (
    "java.lang.LinkageError",
    "java.lang.ClassNotFoundException",
    "java.lang.NoSuchMethodException",
    "java.lang.NoSuchFieldException",
)
# What Py4J says where it can't find what was called: a method or constructor with these arguments, a name in a class.
_MISSING = ("does not exist", "py4j.reflection")
# Py4J takes a missing class for a package, and a package can't be called.
_PACKAGE = "'JavaPackage' object is not callable"
_WARNED: set[str] = set()


def is_another_version(error: Exception) -> bool:
    """Whether an error of a call into the JVM means that this version of Delta lacks an internal class or method.

    A failure of the call itself (a disk, a conflict, a lost connection) does not count; the caller raises it again.
    """
    if isinstance(error, TypeError):
        return _PACKAGE in str(error)
    if isinstance(error, Py4JJavaError):
        return _is_linkage(error.java_exception)
    # Py4J raises the class itself for what it could not call; its subclasses are lost connections.
    return type(error) is Py4JError and any(text in str(error) for text in _MISSING)


def warn_of_another_version(jvm: Any, feature: str, error: Exception) -> None:
    """Log, once for each feature, that this version of Delta lacks the internals that the feature needs."""
    if feature not in _WARNED:
        _WARNED.add(feature)
        _LOG.warning(
            "Delta %s lacks internal classes that %s needs; batches are written by public commands, which take longer: %s",
            _version(jvm),
            feature,
            str(error).strip().partition("\n")[0],
        )


def added_files(actions: Iterable[Any]) -> list[Any]:
    """The actions, of those that Delta wrote, that add files to a table."""
    return [action for action in actions if action.getClass().getSimpleName() == "AddFile"]


def row_count(added: Iterable[Any]) -> int | None:
    """How many rows added files have; None where Delta does not know it of one of them."""
    counts = [file.numPhysicalRecords() for file in added]
    return None if any(count.isEmpty() for count in counts) else sum(int(count.get()) for count in counts)


def _is_linkage(thrown: Any) -> bool:
    """Whether a Java exception's class is one of ``_LINKAGE``, or below it."""
    kind = thrown.getClass()
    while kind is not None:
        if kind.getName() in _LINKAGE:
            return True
        kind = kind.getSuperclass()
    return False


def _version(jvm: Any) -> str:
    try:
        return str(java_class(jvm, "io.delta.package").VERSION())
    except (Py4JError, TypeError):
        return "of this version"
