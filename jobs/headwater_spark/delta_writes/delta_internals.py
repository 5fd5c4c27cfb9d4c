"""Delta's parts that have no public face: what tells that this Delta has other ones than those that are called here."""

from __future__ import annotations

import logging
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

_LOG = logging.getLogger("headwater.delta")
# What the JVM throws where a class, method or field that was compiled against is not there.
_LINKAGE = (
    "java.lang.LinkageError",
    "java.lang.ClassNotFoundException",
    "java.lang.NoSuchMethodException",
    "java.lang.NoSuchFieldException",
)
# What Py4J says where it can't find what was called: a method or constructor with these arguments, a name in a class.
_NOT_THERE = ("does not exist", "py4j.reflection")
# A class that is not there is a package to Py4J, and a package can't be called.
_PACKAGE = "'JavaPackage' object is not callable"
_WARNED: set[str] = set()


def is_another_version(error: Exception) -> bool:
    """Whether an error of a call into the JVM means that this version of Delta has no such part.

    A failure of the part itself (a disk, a conflict, a lost connection) is none of these, and is to be raised again.
    """
    if isinstance(error, TypeError):
        return _PACKAGE in str(error)
    if isinstance(error, Py4JJavaError):
        return _is_linkage(error.java_exception)
    # Py4J raises the class itself for what it could not call; its subclasses are lost connections.
    return type(error) is Py4JError and any(words in str(error) for words in _NOT_THERE)


def warn_of_another_version(jvm: Any, what: str, error: Exception) -> None:
    """Log, once for each use of Delta's parts, that they are not those that are expected."""
    if what not in _WARNED:
        _WARNED.add(what)
        _LOG.warning(
            "Delta %s does not have the parts that %s needs; batches are written by public commands, which take longer: %s",
            _version(jvm),
            what,
            str(error).strip().partition("\n")[0],
        )


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
        return str(getattr(jvm, "io.delta.package").VERSION())
    except (Py4JError, TypeError):
        return "of this version"
