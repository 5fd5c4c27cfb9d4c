"""Checkpoints that Spark goes on from as if it had written them: a position, or a copy up to a batch."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.checkpoints.log_entries import SHUFFLE_PARTITIONS, fault_of, write_entry
from headwater.checkpoints.offsets import numbered, read_offsets
from headwater.checkpoints.whole_folders import copy_durably
from headwater.files.atomic_files import write_atomically
from headwater.preflight.flow_start import Positions
from headwater.storage.place import Place, parts_below

# Spark reads the two newest entries of its offset log at each start, so two are written.
SEEDED_BATCHES = 2
_STATE_FILE = re.compile(r"\.?(\d+)(?:_[^.]+)*\.(?:delta|changelog|snapshot|zip)(?:\.crc)?")


def new_query_id() -> str:
    """An id that no query ever had: under it, no batch is in the table yet."""
    return str(uuid.uuid4())


def seed(
    folder: Place,
    identity: str,
    position: Positions,
    files: Mapping[int, Sequence[Mapping[str, Any]]],
    like: Place | None,
    partitions: str,
) -> None:
    """Fill a checkpoint that stands at a position, with no batch of its own.

    Args:
        folder: the new checkpoint.
        identity: the query's id.
        position: the end offsets, one a source.
        files: for each file source (by number) what it has read, as lines of Spark's log.
        like: a checkpoint whose settings it takes (they are frozen there), where there is one.
        partitions: the number that a batch shuffles into, for where ``like`` does not say.
    """
    ends = list(position)
    for index, entries in files.items():
        ends[index] = json.dumps({"logOffset": 0})
        lines = [json.dumps({**entry, "batchId": 0}) for entry in entries]
        write_entry(folder / "sources" / str(index) / "0", "\n".join(["v1", *lines]))
    text = "\n".join(["v1", settings_line(like, partitions), *("-" if end is None else end for end in ends)])
    for batch in range(SEEDED_BATCHES):
        write_entry(folder / "offsets" / str(batch), text)
        write_entry(folder / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":0}')
    write_identity(folder, identity)


def copy_up_to(source: Place, target: Place, identity: str, batch: int) -> None:
    """Copy a checkpoint as it was after a batch, under another query id; later batches, state and files are left out."""
    ends = read_offsets(source, batch)

    def keep(file: Place) -> bool:
        inside = parts_below(file, source)
        number = re.fullmatch(r"\.?(\d+)(?:\.compact)?(?:\.crc)?", file.name)
        if inside[0] in ("offsets", "commits"):
            return number is not None and int(number[1]) <= batch
        if inside[0] == "state":
            match = _STATE_FILE.fullmatch(file.name)
            return match is None or int(match[1]) <= batch + 1
        if inside[0] == "sources" and len(inside) > 2 and inside[1].isdigit():
            return _keeps_source_file(ends.source(int(inside[1])), number)
        return inside[0] not in ("metadata", ".metadata.crc")

    copy_durably(source, target, keep)
    if not (target / "commits" / str(batch)).exists():
        # The table has the batch, though Spark had not marked it as done.
        write_entry(
            target / "commits" / str(batch),
            f"v1\n{json.dumps({'nextBatchWatermarkMs': _watermark(source, batch)})}",
        )
    write_identity(target, identity)


def write_identity(folder: Place, identity: str) -> None:
    """Write Spark's file with the query's id."""
    write_atomically(folder / "metadata", json.dumps({"id": identity}, separators=(",", ":")))


def settings_line(like: Place | None, partitions: str) -> str:
    """The second line of an offset entry: that of the newest entry of a checkpoint, without its watermark.

    It always names a number of partitions: without one Spark 4.2 can't repeat a batch that follows and was not ended (``None.get``).
    """
    conf = {SHUFFLE_PARTITIONS: partitions}
    plain: dict[str, Any] = {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": conf}
    for batch in sorted(numbered(like / "offsets"), reverse=True) if like is not None else ():
        if like is not None and fault_of(like / "offsets" / str(batch)) is None:
            return json.dumps(
                {**plain, "conf": {**conf, **read_offsets(like, batch).metadata.get("conf", {})}}
            )
    return json.dumps(plain)


def _watermark(source: Place, batch: int) -> int:
    return int(read_offsets(source, batch).metadata.get("batchWatermarkMs", 0))


def _keeps_source_file(position: Any, number: re.Match[str] | None) -> bool:
    if number is None or not isinstance(position, dict) or "logOffset" not in position:
        return True
    return int(number[1]) <= int(position["logOffset"])
