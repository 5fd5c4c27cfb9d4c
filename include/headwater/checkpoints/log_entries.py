"""Single entries of Spark's two logs: what is wrong with one, putting one aside, writing one back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from headwater.checkpoints.checksums import agrees, checksum_file
from headwater.checkpoints.offsets import numbered
from headwater.files.atomic_files import write_atomically
from headwater.files.json_lines import lines_of, read_lines
from headwater.storage.place import Place, parts_below
from headwater.storage.walking import in_order, move

# Spark 4.2 reads up to this version of its logs.
_NEWEST_FORMAT = 2
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


class EntryFault(Enum):
    """What is wrong with an entry. Spark has an error for all but one of these, and none of them names a remedy."""

    EMPTY = "the file is empty"
    CUT = "the file is cut off, or not JSON"
    HEADER = "the file does not begin with its version"
    NEWER = "the file has the form of a newer Spark"
    ALTERED = "the file is not what its checksum says"

    @property
    def description(self) -> str:
        """The fault in words."""
        return self.value


def fault_of(file: Place) -> EntryFault | None:
    """What keeps Spark from reading an entry, None where nothing does. The file must be there."""
    lines = lines_of(file.read_bytes().decode("utf-8", errors="replace"))
    if not any(line.strip() for line in lines):
        return EntryFault.EMPTY
    version = lines[0].removeprefix("v") if lines[0].startswith("v") else ""
    if not version.isdigit() or int(version) < 1:
        return EntryFault.HEADER
    if int(version) > _NEWEST_FORMAT:
        return EntryFault.NEWER
    if not agrees(file):
        return EntryFault.ALTERED
    # An offset entry has a line for each source behind the first two; a mark has one line.
    least = 3 if file.parent.name == "offsets" else 2
    return None if len(lines) >= least and all(map(_reads, lines[1:])) else EntryFault.CUT


def _reads(line: str) -> bool:
    try:
        json.loads(line if line.strip() not in ("", "-") else "{}")
    except json.JSONDecodeError:
        return False
    return True


def put_aside(file: Place, epoch: Place | None = None) -> Place | None:
    """Move an entry, or a folder, where Spark does not look: into ``.aside`` of the epoch, which is above them where it is not given."""
    if not file.exists():
        return None
    epoch = epoch or (file.parent if file.is_dir() else file.parent.parent)
    folder = (epoch / ".aside").joinpath(*parts_below(file, epoch)[:-1])
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    while (target := folder / f"{file.name}{f'.{number}' if number else ''}").exists():
        number += 1
    checksum_file(file).unlink(missing_ok=True)
    move(file, target)
    return target


def remains(folder: Place) -> list[Place]:
    """What a driver has left in the two logs of an epoch in which it never planned a batch.

    Spark begins an epoch only where it finds its folders empty; a half-written file that never got its name counts, too.
    """
    logs = [folder / name for name in ("offsets", "commits")]
    if any(numbered(log) for log in logs):
        return []
    return [file for log in logs if log.is_dir() for file in in_order(log.iterdir())]


def put_back(
    folder: Place, batch: int, position: tuple[str | None, ...] | None, settings: Mapping[str, str]
) -> None:
    """Write an offset entry of a checkpoint; ``position`` None: as the entry that follows it.

    A damaged one is put aside first. The settings of its second line are those of its nearest neighbour, else ``settings``.
    """
    file = folder / "offsets" / str(batch)
    lines = next(_whole_neighbours(folder, batch), ["v1", "{}"])
    put_aside(file)
    ends = lines[2:] if position is None else ["-" if text is None else text for text in position]
    metadata = (
        lines[1]
        if lines[1] != "{}"
        # Spark 4.2 fails at an entry without its number of partitions, even where there is no state.
        else json.dumps(
            {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {SHUFFLE_PARTITIONS: "200", **settings}}
        )
    )
    write_entry(file, "\n".join([lines[0], metadata, *ends]))


def has_whole_neighbour(folder: Place, batch: int) -> bool:
    """Whether the offset log has another entry that is not damaged: one that is put back takes its settings."""
    return any(True for _ in _whole_neighbours(folder, batch))


def _whole_neighbours(folder: Place, batch: int) -> Iterator[list[str]]:
    """The lines of the other entries that are not damaged, the nearest first; of two at the same distance the one that follows."""
    others = numbered(folder / "offsets") - {batch}
    for number in sorted(others, key=lambda number: (abs(number - batch), number < batch)):
        if fault_of(entry := folder / "offsets" / str(number)) is None:
            yield read_lines(entry)


def rewrite_commit(folder: Place, batch: int, began_with: int) -> None:
    """Write the mark of a batch, with the watermark that the batch ``began_with`` began with: the one after it, or itself."""
    following = read_lines(folder / "offsets" / str(began_with))
    metadata: dict[str, Any] = json.loads(following[1])
    put_aside(folder / "commits" / str(batch))
    mark = {"nextBatchWatermarkMs": int(metadata.get("batchWatermarkMs", 0))}
    write_entry(folder / "commits" / str(batch), f"v1\n{json.dumps(mark)}")


def write_entry(file: Place, text: str) -> None:
    """Write an entry durably; a checksum of what was there before would make Spark refuse it."""
    checksum_file(file).unlink(missing_ok=True)
    write_atomically(file, text)
