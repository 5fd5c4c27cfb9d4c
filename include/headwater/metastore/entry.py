"""The entry of a table in a Hive metastore: its name, whose it is, and what Spark and others need to find the Delta table behind it.

Decision 0196.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.definitions.dataset_name import DatasetName
from headwater.metastore.column_types import Column
from headwater.metastore.thrift_binary import Field, Items, Kind, Pairs, Struct
from headwater.runtime.secret_values import names_a_secret, without_known

# The properties by which an entry is known to be ours: the pipeline, and the id that Delta gave the table.
PIPELINE = "headwater.pipeline"
TABLE_ID = "headwater.table_id"
# The names of the table's own properties in the entry, so that one that is taken away goes there, too.
_OURS = "headwater.properties"
_LONGEST = 4000
# Names that mean something else to a metastore, to Spark or to Hive: one of them makes DROP TABLE remove the files.
_KEPT_OUT = re.compile(
    r"external|external\.table\.purge|auto\.purge|comment|transactional.*|transient_lastddltime|storage_handler|bucketing_version"
    r"|spark\.sql\..*|headwater\..*|numfiles|numrows|totalsize|rawdatasize|column_stats_accurate|do_not_update_stats|discover\.partitions",
    re.IGNORECASE,
)
# As Spark itself registers a Delta table: classes that nobody reads it with, and the provider as a property.
_INPUT = "org.apache.hadoop.mapred.SequenceFileInputFormat"
_OUTPUT = "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat"
_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


@dataclass(frozen=True, order=True)
class EntryName:
    """Database and table, in lower case, as a metastore keeps them."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"

    @classmethod
    def of(cls, name: DatasetName) -> EntryName:
        """The name in a metastore, which has two parts: ``catalog.schema.table`` becomes ``catalog_schema.table``."""
        parts = (name.catalog, name.schema) if name.catalog else (name.schema,)
        return cls("_".join(parts).lower(), name.table.lower())


@dataclass(frozen=True)
class Entry:
    """What a table's entry is to say. ``place``: the table's folder, as we spell it; ``table_id``: Delta's."""

    name: EntryName
    dataset: str
    pipeline: str
    table_id: str
    place: str
    columns: tuple[Column, ...]
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def location(self) -> str:
        """The table's place as other readers understand it: a ``file:`` URI, ``s3a://`` for what we call ``s3://``."""
        return f"file:{self.place}" if self.place.startswith("/") else re.sub(r"^s3://", "s3a://", self.place)


@dataclass(frozen=True)
class Mark:
    """Whose an entry is: that of a pipeline, for the Delta table of an id."""

    pipeline: str
    table_id: str


def published(properties: Mapping[str, str]) -> dict[str, str]:
    """A table's properties that its entry shows: no secret, none that a metastore or Spark would obey, none too long."""
    return {
        key: without_known(value)
        for key, value in sorted(properties.items())
        if not (_KEPT_OUT.fullmatch(key) or names_a_secret(key))
        and len(key) <= 256
        and len(value) <= _LONGEST
    }


def mark_of(table: Struct) -> Mark | None:
    """Whose an entry is; None for one that is not a pipeline's, or that would take the files with it."""
    parameters = _parameters(table)
    pipeline, table_id = parameters.get(PIPELINE), parameters.get(TABLE_ID)
    managed = table[12].value != "EXTERNAL_TABLE" if 12 in table else True
    return None if managed or not pipeline or not table_id else Mark(pipeline, table_id)


def columns_of(table: Struct) -> tuple[Column, ...]:
    """The columns of an entry."""
    return tuple(
        Column(*(str(column[number].value) if number in column else "" for number in (1, 2, 3)))
        for column in table[7].value[1].value.values
    )


def without_columns(table: Struct) -> Struct:
    """The same entry with no column."""
    storage = {**table[7].value, 1: Field(Kind.LIST, Items(Kind.STRUCT, ()))}
    return {**table, 7: Field(Kind.STRUCT, storage)}


def table_of(entry: Entry, existing: Struct | None, owner: str, now: int) -> Struct:
    """The entry as a metastore takes it; equal to the existing one where nothing is to be changed.

    Args:
        entry: what it is to say.
        existing: the entry as it is; what others have set there stays.
        owner: the user, for a new one.
        now: the time, for a new one, in seconds since 1970.
    """
    table = dict(existing) if existing is not None else _new(owner, now)
    table |= {1: _text(entry.name.table), 2: _text(entry.name.database), 7: _storage(entry, table)}
    table |= {9: _map(_all_parameters(entry, _parameters(table))), 12: _text("EXTERNAL_TABLE")}
    return table


def _new(owner: str, now: int) -> Struct:
    return {
        3: _text(owner),
        4: Field(Kind.I32, now),
        5: Field(Kind.I32, 0),
        6: Field(Kind.I32, 0),
        8: Field(Kind.LIST, Items(Kind.STRUCT, ())),
    }


def _storage(entry: Entry, table: Struct) -> Field:
    before: Struct = table[7].value if 7 in table else {}
    serde: Struct = before[7].value if 7 in before else {}
    place = entry.location if not _same_place(before, entry.location) else str(before[2].value)
    settings = dict(serde[3].value.values) if 3 in serde else {}
    settings |= {"path": entry.location, "serialization.format": "1"}
    storage = {
        5: Field(Kind.BOOL, value=False),
        6: Field(Kind.I32, -1),
        **before,
        1: Field(Kind.LIST, Items(Kind.STRUCT, tuple(map(_column, entry.columns)))),
        2: _text(place),
        3: _text(_INPUT),
        4: _text(_OUTPUT),
        7: Field(Kind.STRUCT, {**serde, 2: _text(_SERDE), 3: _map(settings)}),
    }
    for number in (8, 9):
        storage.setdefault(number, Field(Kind.LIST, Items(Kind.STRING if number == 8 else Kind.STRUCT, ())))
    return Field(Kind.STRUCT, storage)


def _same_place(storage: Struct, location: str) -> bool:
    """A server spells a place in its own way: ``file:/a`` as ``file:///a``."""
    known = str(storage[2].value) if 2 in storage else ""
    return re.sub(r"^file:/+", "file:/", known).rstrip("/") == location.rstrip("/")


def _column(column: Column) -> Struct:
    named = {1: _text(column.name), 2: _text(column.type)}
    return {**named, 3: _text(column.comment)} if column.comment else named


def _all_parameters(entry: Entry, before: Mapping[str, str]) -> dict[str, str]:
    own = published(entry.properties)
    kept = {key: value for key, value in before.items() if key not in _former(before) - set(own)}
    if not entry.comment:
        kept.pop("comment", None)
    comment = {"comment": entry.comment[:_LONGEST]} if entry.comment else {}
    return {
        **kept, **own, **comment, "EXTERNAL": "TRUE", "spark.sql.sources.provider": "delta", "spark.sql.partitionProvider": "catalog",
        PIPELINE: entry.pipeline, TABLE_ID: entry.table_id, _OURS: json.dumps(sorted(own)),
    }  # fmt: skip


def _former(before: Mapping[str, str]) -> set[str]:
    """The properties that the entry had from the table so far, as far as nobody has touched the list of them."""
    try:
        names = json.loads(before.get(_OURS, "[]"))
    except ValueError:
        return set()
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _parameters(table: Struct) -> dict[str, str]:
    return dict(table[9].value.values) if 9 in table else {}


def _text(text: str) -> Field:
    return Field(Kind.STRING, text)


def _map(values: Mapping[str, str]) -> Field:
    return Field(Kind.MAP, Pairs(Kind.STRING, Kind.STRING, dict(values)))
