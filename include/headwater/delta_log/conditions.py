"""What the log of a Delta table may turn out to be."""

from __future__ import annotations

from headwater.errors import SourceUnreachable
from headwater.storage.place import Place


class CatalogManagedTable(SourceUnreachable):
    """A catalog owns the commits of the table: its log does not have all of them."""

    condition = "CATALOG_MANAGED_TABLE"
    transient = False


def catalog_managed(error: Exception, table: Place) -> CatalogManagedTable | None:
    """The error for a table that delta-rs does not open because a catalog owns its commits; None for another reason."""
    if "catalog-managed" not in str(error):
        return None
    return CatalogManagedTable(
        "A catalog manages this table: what was committed last may be known to the catalog alone, and every check here reads the "
        "table's own log.",
        where=table,
        remedy="Nothing was read or written. Let the pipeline use a table that lies at its own path: take the feature catalogManaged "
        "away in the catalog, or copy the rows.",
    )


def words_of(error: Exception) -> str:
    """What delta-rs says of a table, without the frames of its own code."""
    return str(error).partition("\n")[0].strip()


def log_unreadable(error: Exception, table: Place) -> SourceUnreachable:
    """The error for a table whose log delta-rs does not open."""
    return catalog_managed(error, table) or SourceUnreachable(
        f"The log of the Delta table can't be read: {words_of(error)}",
        where=table,
        remedy="Nothing was changed. Where a flow of the pipeline fills the table, `headwater checkpoints diagnose PIPELINE_DIR` names the "
        "file that is damaged, if one is.",
    )
