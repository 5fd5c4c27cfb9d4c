from __future__ import annotations

import re
from dataclasses import dataclass

from headwater.errors import InvalidName

NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def check_name(name: str, what: str, where: object = None) -> str:
    """Return ``name`` if it is one plain identifier, else raise InvalidName saying what it names."""
    if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
        raise InvalidName(
            f"{name!r} can't name a {what}.",
            where=where,
            remedy="Use letters, digits and underscores, not starting with a digit, at most 128 characters.",
        )
    return name


@dataclass(frozen=True)
class DatasetName:
    """``table``, ``schema.table`` or ``catalog.schema.table``, with the pipeline's defaults filled in."""

    catalog: str | None
    schema: str
    table: str

    @classmethod
    def parse(cls, text: str, *, catalog: str | None, schema: str, where: object = None) -> DatasetName:
        """Read a name as the user spells it (backticks and the legacy ``LIVE.`` prefix allowed)."""
        parts = [part.strip("`") for part in str(text).split(".")]
        if len(parts) > 1 and parts[0].upper() == "LIVE":
            parts = parts[1:]
        if len(parts) > 3:
            raise InvalidName(
                f"{text!r} has more than three parts.", where=where, remedy="Use catalog.schema.table."
            )
        if not all(NAME_PATTERN.fullmatch(part) for part in parts):
            check_name(text, "dataset", where)
        table = parts[-1]
        return cls(
            parts[0] if len(parts) == 3 else catalog,
            parts[-2] if len(parts) > 1 else schema,
            table,
        )

    @property
    def location(self) -> str:
        """The folder of the table below the warehouse."""
        return "/".join(part for part in (self.catalog, self.schema, self.table) if part)

    def display(self, *, catalog: str | None, schema: str) -> str:
        """The shortest spelling that means this dataset in a pipeline with these defaults."""
        if self.catalog != catalog:
            return ".".join(part for part in (self.catalog, self.schema, self.table) if part)
        return self.table if self.schema == schema else f"{self.schema}.{self.table}"
