"""An append to the event log on an object store in two requests: the rows, and the commit that is written only if it is the next.

delta-rs reads the whole log before it appends. Here the copy of the log on this machine says what has to be known: that the table
has our columns and nothing that a writer must honour. Everything else is left to delta-rs.

Decision 0185.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.storage.atomic import read_tagged, write_if_unchanged
from headwater.storage.delta_tables import delta_table, table_log
from headwater.storage.mirrors import LOG, mirrored_log
from headwater.storage.object_path import ObjectPath
from headwater.storage.walking import copy_file

_ATTEMPTS = 20
# Commits behind the newest checkpoint of the log, and files of the table: whoever opens it for the first time reads them all.
COMMITS_KEPT = 10
_FILES_KEPT = 20


@dataclass(frozen=True)
class OpenCommit:
    """A commit that was sent: until an answer comes, it is not known whether the store has it."""

    file: ObjectPath
    text: str

    def settle(self) -> bool:
        """Have it there now; False where another writer has its number, so that it never will be. Raises StoreUnreachable."""
        # No other writer's commit has the name of this file of rows.
        return write_if_unchanged(self.file, self.text, None)


def append_next(table: ObjectPath, rows: Any, sending: Callable[[OpenCommit], None] = lambda _: None) -> bool:
    """Append rows (a pyarrow table) as the next version of a table, which is made where it is not there.

    Args:
        table: its folder.
        rows: what to append.
        sending: called with each commit before it is sent. After StoreUnreachable, the last one has to be settled first: with another
            commit, the rows might be there twice.

    Returns:
        False where the table is not so simple that this may be done; then nothing is committed.

    Raises:
        StoreUnreachable: it is not known whether it was done.

    """
    version = _next_version(table, rows)
    if version is None:
        return False
    name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    data = _parquet(rows)
    (table / name).write_bytes(data)
    commit = _commit(name, len(data), rows) + ("" if version else _table(rows))
    for number in range(version, version + _ATTEMPTS):
        file = table / LOG / f"{number:020d}.json"
        sent = OpenCommit(file, commit)
        sending(sent)
        if sent.settle():
            return True
        # Another writer has this number: rows of another append are nothing to us, other columns are.
        if any(kind in _text_of(file) for kind in ('"metaData"', '"protocol"')):
            return False
    return False


def keep_short(table: ObjectPath, *, compact: bool) -> None:
    """Write a checkpoint of the log where one is due, and few files instead of many; raises what delta-rs raises.

    The checkpoint is made of the copy on this machine, and put beside the commits. ``compact``: also put files together.
    """
    commits: set[int] = set()
    checkpoints = {-1}
    for name in (table / LOG).listed():
        if name[:20].isdigit():
            (checkpoints if ".checkpoint" in name else commits).add(int(name[:20]))
    newest = max(checkpoints)
    if sum(number > newest for number in commits) < COMMITS_KEPT:
        return
    copy = mirrored_log(table)
    if copy is None:
        return
    opened = delta_table(copy)
    if compact and len(opened.file_uris()) > _FILES_KEPT:
        own = delta_table(table)
        own.optimize.compact()
        own.create_checkpoint()
        return
    with tempfile.TemporaryDirectory() as folder:
        own_log = Path(folder) / LOG
        own_log.mkdir()
        # Not in the copy itself: a checkpoint there would outlive a log that is put back from a backup.
        for file in (copy / LOG).glob("[0-9]*"):
            copy_file(file, own_log / file.name)
        made = delta_table(Path(folder))
        made.create_checkpoint()
        # The pointer last: it names what has to be there.
        for name in (f"{made.version():020d}.checkpoint.parquet", "_last_checkpoint"):
            copy_file(own_log / name, table / LOG / name)


def _text_of(file: ObjectPath) -> str:
    """The commit as it is now, whatever a look has seen before; empty where there is none."""
    seen = read_tagged(file)
    return seen[0] if seen is not None else ""


def _next_version(table: ObjectPath, rows: Any) -> int | None:
    from deltalake.exceptions import DeltaError

    if not (table / LOG).listed():
        # delta-rs takes its own commit for another's where the answer to the first gets lost, and its rows came twice.
        return 0
    try:
        opened = table_log(table)
        protocol, metadata = opened.protocol(), opened.metadata()
    except DeltaError:
        return None  # delta-rs says what is wrong with it
    simple = (
        protocol.min_writer_version <= 2 and not metadata.configuration and not metadata.partition_columns
    )
    same = json.loads(_schema(rows)) == json.loads(opened.schema().to_json())
    return opened.version() + 1 if simple and same else None


def _schema(rows: Any) -> str:
    """Their columns, as Delta's log has them."""
    from deltalake import Schema

    return Schema.from_arrow(rows.schema).to_json()


def _table(rows: Any) -> str:
    """What the first commit also says: the columns, and that there is nothing that a reader or a writer must know."""
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": _schema(rows),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": time.time_ns() // 1_000_000,
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    return _lines({"protocol": protocol}, {"metaData": metadata})


def _lines(*actions: dict[str, Any]) -> str:
    return "".join(json.dumps(action) + "\n" for action in actions)


def _parquet(rows: Any) -> bytes:
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(rows, buffer, compression="snappy")
    return buffer.getvalue()


def _commit(name: str, size: int, rows: Any) -> str:
    """The text of a commit. The greatest number is among its statistics: writers look for it there."""
    now = time.time_ns() // 1_000_000
    numbers = [row["data_plane_id"]["seq_no"] for row in rows["sequence"].to_pylist()]
    least, most = ({"sequence": {"data_plane_id": {"seq_no": end(numbers)}}} for end in (min, max))
    stats = {"numRecords": rows.num_rows, "minValues": least, "maxValues": most, "nullCount": {}}
    add = {
        "path": name,
        "partitionValues": {},
        "size": size,
        "modificationTime": now,
        "dataChange": True,
        "stats": json.dumps(stats),
    }
    info = {
        "timestamp": now,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append"},
        "engineInfo": "headwater",
    }
    return _lines({"commitInfo": info}, {"add": add})
