"""Which features of a table shut out which engines: docs/other-engines.md, as a rule.

The page's table is compared with real engines by ``make test-engines``, and with this rule by a unit test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

# Settings of a session with this prefix are properties of every table that it makes.
_DEFAULTS = "spark.databricks.delta.properties.defaults."
_VARIANT = re.compile(r"(?:^|[:<,])\s*variant\s*(?=$|[,>])", re.IGNORECASE)


class Engine(StrEnum):
    """An engine that has been tried on tables of ours. ``PANDAS``: delta-rs' ``to_pandas`` and ``to_pyarrow_table``."""

    DUCKDB = "duckdb"
    POLARS = "polars"
    DELTA_RS = "delta-rs"
    PANDAS = "pandas"


@dataclass(frozen=True)
class TableFeature:
    """A feature that not every engine reads.

    Attributes:
        protocol: its name in a table's protocol.
        title: what to call it in a sentence.
        shut_out: the engines that refuse a table with it.
        remedy: how a table does without it.
        key: the table property that turns it on, None where a column's type does.
        value: the property's value that does, in lower case.

    """

    protocol: str
    title: str
    shut_out: frozenset[Engine]
    remedy: str
    key: str | None = None
    value: str = "true"


FEATURES = (
    TableFeature(
        "columnMapping",
        "column mapping",
        frozenset({Engine.POLARS}),
        "Leave delta.columnMapping.mode out",
        "delta.columnMapping.mode",
        "name|id",
    ),
    TableFeature(
        "deletionVectors",
        "deletion vectors",
        frozenset({Engine.PANDAS}),
        "Leave delta.enableDeletionVectors out",
        "delta.enableDeletionVectors",
    ),
    TableFeature(
        "v2Checkpoint",
        "v2 checkpoints",
        frozenset({Engine.POLARS, Engine.PANDAS}),
        "Leave delta.checkpointPolicy out",
        "delta.checkpointPolicy",
        "v2",
    ),
    TableFeature(
        "typeWidening",
        "type widening",
        frozenset({Engine.POLARS, Engine.DELTA_RS, Engine.PANDAS}),
        "Leave delta.enableTypeWidening out, and declare the wider type from the start",
        "delta.enableTypeWidening",
    ),
    TableFeature(
        "variantType", "VARIANT columns", frozenset({Engine.POLARS}), "Keep the values as JSON text (STRING)"
    ),
)


@dataclass(frozen=True)
class ShutOut:
    """A feature of a table, and those of the named readers that can't read a table with it."""

    feature: TableFeature
    readers: tuple[Engine, ...]


def shut_out(
    readers: Iterable[Engine],
    properties: Mapping[str, str],
    types: Iterable[str],
    session: Mapping[str, str] | None = None,
) -> Iterator[ShutOut]:
    """The features of a table that one of its readers does not know.

    Args:
        readers: the engines that have to read it.
        properties: the table's, as declared.
        types: of its columns, as Spark prints them.
        session: settings of the session that makes the table.

    """
    readers = tuple(dict.fromkeys(readers))
    defaults = {
        f"delta.{key[len(_DEFAULTS) :]}".lower(): value
        for key, value in (session or {}).items()
        if key.startswith(_DEFAULTS)
    }
    known = {**defaults, **{key.lower(): value for key, value in properties.items()}}
    has_variant = any(_VARIANT.search(text) for text in types)
    for feature in FEATURES:
        excluded = tuple(reader for reader in readers if reader in feature.shut_out)
        if excluded and (_is_on(feature, known) or (feature.key is None and has_variant)):
            yield ShutOut(feature, excluded)


def _is_on(feature: TableFeature, known: Mapping[str, str]) -> bool:
    """Whether a property turns it on; ``delta.feature.NAME`` does by itself."""
    name = f"delta.feature.{feature.protocol}".lower()
    if name in known or f"{name}-preview" in known:
        return True
    if feature.key is None:
        return False
    return known.get(feature.key.lower(), "").strip().lower() in feature.value.split("|")
