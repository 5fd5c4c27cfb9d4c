"""The name of a dataset, of one to three parts, and the folder that follows from it (decision 0014)."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.definitions.names import check_dotted_name, invalid_name, is_plain_name
from headwater.errors import InvalidName


@dataclass(frozen=True)
class DatasetName:
    """``table``, ``schema.table`` or ``catalog.schema.table``, with the pipeline's defaults filled in."""

    catalog: str | None
    schema: str
    table: str

    @classmethod
    def parse(cls, text: str, *, catalog: str | None, schema: str, where: object = None) -> DatasetName:
        """Read a name as the user spells it (backticks and the legacy ``LIVE.`` prefix allowed)."""
        parts = [part.strip("`") for part in text.split(".")] if isinstance(text, str) else []
        if len(parts) > 1 and parts[0].upper() == "LIVE":
            parts = parts[1:]
        if len(parts) > 3:
            raise InvalidName(
                f"{ascii(text)[:80]} has more than three parts.",
                where=where,
                remedy="Use catalog.schema.table.",
            )
        if not parts or not all(map(is_plain_name, parts)):
            raise invalid_name(text, "dataset", where)
        name = cls(
            parts[0] if len(parts) == 3 else catalog,
            parts[-2] if len(parts) > 1 else schema,
            parts[-1],
        )
        # The spelling that names folders may have all its parts.
        check_dotted_name(".".join(name.location.split("/")), "dataset", where)
        return name

    @property
    def location(self) -> str:
        """The folder of the table below the warehouse."""
        return "/".join(part for part in (self.catalog, self.schema, self.table) if part)

    def display(self, *, catalog: str | None, schema: str) -> str:
        """The shortest spelling that means this dataset in a pipeline with these defaults."""
        if self.catalog != catalog:
            return ".".join(part for part in (self.catalog, self.schema, self.table) if part)
        return self.table if self.schema == schema else f"{self.schema}.{self.table}"
