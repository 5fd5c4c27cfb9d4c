"""Names of columns as Spark reads them."""

from __future__ import annotations

from collections.abc import Collection


def quoted(*path: str) -> str:
    """A column's name in backticks, whatever characters it has; several parts are a path into structs."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def column_path(name: str, columns: Collection[str]) -> str:
    """A declared name in backticks: one of ``columns`` (in lower case), whatever characters it has, else a path into a struct."""
    whole = "." not in name or name.lower() in columns
    return quoted(name) if whole else quoted(*name.split("."))
