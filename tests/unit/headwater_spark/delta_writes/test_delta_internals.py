"""Only what means that Delta has no such part counts as another version of Delta; failures of the parts are raised."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from headwater_spark.delta_writes.delta_internals import is_another_version, warn_of_another_version


class JavaClass:
    """A class as Py4J shows it: its name, and the one above it."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def getName(self) -> str:  # noqa: N802 - Java's name
        return self._names[0]

    def getSuperclass(self) -> JavaClass | None:  # noqa: N802 - Java's name
        return JavaClass(*self._names[1:]) if len(self._names) > 1 else None


class Thrown:
    """A Java exception as Py4J shows it."""

    _target_id, _gateway_client = "o1", None

    def __init__(self, *names: str) -> None:
        self._names = names

    def getClass(self) -> JavaClass:  # noqa: N802 - Java's name
        return JavaClass(*self._names)


def thrown(*names: str) -> Py4JJavaError:
    """What Py4J raises for a Java exception; ``names``: its class and those above it."""
    error = Py4JJavaError.__new__(Py4JJavaError)
    error.java_exception = Thrown(*names)
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TypeError("'JavaPackage' object is not callable"), True),
        (TypeError("unsupported operand type(s) for +: 'int' and 'str'"), False),
        (Py4JError("An error occurred while calling o1.foo. Trace:\npy4j.Py4JException: Method foo([]) does not exist"), True),
        (Py4JError("io.delta.Nothing does not exist in the JVM"), True),
        (Py4JError("Answer from Java side is empty"), False),
        (Py4JNetworkError("An error occurred while trying to connect: it does not exist"), False),
        (thrown("java.lang.NoSuchMethodError", "java.lang.IncompatibleClassChangeError", "java.lang.LinkageError"), True),
        (thrown("java.lang.ClassNotFoundException", "java.lang.Exception"), True),
        (thrown("java.io.IOException", "java.lang.Exception"), False),
        (thrown("java.lang.OutOfMemoryError", "java.lang.Error"), False),
    ],
)  # fmt: skip
def test_which_errors_mean_another_version(error: Exception, expected: bool):
    """A missing class, method or constructor; not a disk, a lost connection, or a mistake in the call."""
    assert is_another_version(error) == expected


def test_one_warning(caplog: pytest.LogCaptureFixture):
    """The warning names the use and comes once for it, whatever the number of batches."""

    class Jvm:
        def __getattr__(self, _name: str) -> Any:
            raise Py4JError

    for _ in range(3):
        warn_of_another_version(Jvm(), "a test of parts", TypeError("'JavaPackage' object is not callable"))
    messages = [record.getMessage() for record in caplog.records if "a test of parts" in record.getMessage()]
    assert len(messages) == 1
