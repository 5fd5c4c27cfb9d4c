"""Errors about prerequisites of Spark."""

from __future__ import annotations

from headwater.errors import UpdateFailed, UsageError


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


class UnsafeStoreSetting(UsageError):
    """A setting would let two writers of an object store overwrite each other."""

    condition = "UNSAFE_STORE_SETTING"


class UnsupportedStore(UsageError):
    """Storage or warehouse lies in a store that has no exclusive writers here."""

    condition = "UNSUPPORTED_STORE"


class UnsupportedDeployment(UsageError):
    """A driver is to be run in a way that can't work, or was never built."""

    condition = "UNSUPPORTED_DEPLOYMENT"


class ClusterUnreachable(UpdateFailed):
    """The API of the cluster gave no answer, so that nobody knows whether a driver runs."""

    condition = "CLUSTER_UNREACHABLE"
    transient = True


class DriverPodNotStarted(UpdateFailed):
    """A driver's pod was made, and its container could not be started."""

    condition = "DRIVER_POD_NOT_STARTED"
    transient = True
