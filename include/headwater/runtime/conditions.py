"""Errors about prerequisites of Spark."""

from __future__ import annotations

from headwater.errors import UsageError


class JavaNotFound(UsageError):
    """Neither a system Java of the needed version nor the one from PyPI was found."""

    condition = "NO_JAVA"


class JarChecksumMismatch(UsageError):
    """A fetched jar is not the one that was pinned."""

    condition = "JAR_CHECKSUM_MISMATCH"


class JarsUnavailable(UsageError):
    """The pinned jars could not be fetched."""

    condition = "JARS_UNAVAILABLE"


class PortTaken(UsageError):
    """The configured port of a server is in use."""

    condition = "PORT_TAKEN"
