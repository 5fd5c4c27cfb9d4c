"""What a pipeline has registered in a metastore, kept in its storage: entries that have to go are found by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from headwater.files.atomic_files import write_atomically
from headwater.metastore.entry import EntryName
from headwater.storage.place import Place

FILE_NAME = "metastore.json"


@dataclass(frozen=True)
class Registered:
    """An entry as it was last registered. ``place``: the table's folder; ``table_id``: Delta's."""

    dataset: str
    place: str
    table_id: str


@dataclass(frozen=True)
class Record:
    """All entries of a pipeline. ``uri`` and ``warehouse``: those of the last time; ``pending``: something is left to be done."""

    uri: str
    warehouse: str
    pending: bool = True
    entries: Mapping[EntryName, Registered] = field(default_factory=dict)

    def to_json(self) -> str:
        """The text of the file."""
        entries = {str(name): asdict(entry) for name, entry in sorted(self.entries.items())}
        head = {"uri": self.uri, "warehouse": self.warehouse, "pending": self.pending}
        return json.dumps({**head, "entries": entries}, indent=1) + "\n"


def read_record(state_folder: Place) -> Record | None:
    """The record of a pipeline, None where nothing was registered, or the file is not one of ours: all is looked at again then."""
    try:
        data = json.loads((state_folder / FILE_NAME).read_text(encoding="utf-8"))
        entries = {
            EntryName(*name.split(".")): Registered(**entry) for name, entry in data["entries"].items()
        }
        return Record(str(data["uri"]), str(data["warehouse"]), bool(data["pending"]), entries)
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_record(state_folder: Place, record: Record) -> None:
    """Write a record; raises StorageFailed, OSError."""
    write_atomically(state_folder / FILE_NAME, record.to_json())
