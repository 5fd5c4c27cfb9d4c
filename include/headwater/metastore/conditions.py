"""Why a table can't be registered in a metastore: one class per condition."""

from __future__ import annotations

from headwater.errors import InvalidPipeline, RefusedForSafety, UpdateFailed


class MetastoreUnreachable(UpdateFailed):
    """The metastore does not answer."""

    condition = "METASTORE_UNREACHABLE"
    transient = True


class MetastoreRefused(UpdateFailed):
    """The metastore answered, and does not do what it is asked for."""

    condition = "METASTORE_REFUSED"


class MetastoreNameTaken(RefusedForSafety):
    """The metastore has a table of that name which is not the pipeline's."""

    condition = "METASTORE_NAME_TAKEN"


class MetastoreNameClash(InvalidPipeline):
    """Two tables of the pipeline would have one name in the metastore, or one has a name that it can't have."""

    condition = "METASTORE_NAME_CLASH"
