"""Names of columns as Spark reads them."""

from __future__ import annotations


def quoted(*path: str) -> str:
    """A column's name in backticks, whatever characters it has; several parts are a path into structs."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)
