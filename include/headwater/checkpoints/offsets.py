"""Reading what Spark wrote into a checkpoint: the last committed batch, and where each source stood."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlparse

from headwater.checkpoints.rights import not_readable
from headwater.errors import CheckpointUnreadable
from headwater.files.json_lines import lines_of
from headwater.storage.place import Place
from headwater.storage.reading_ahead import read_ahead
from headwater.storage.walking import names_in

_REMEDY = "`headwater checkpoints diagnose PIPELINE_DIR` says what is wrong and what can be done."


@dataclass(frozen=True)
class BatchOffsets:
    """A batch's entry in the offset log. ``sources``: one text a source, None where it has not been read yet."""

    batch_id: int
    metadata: Mapping[str, Any]
    sources: tuple[str | None, ...]
    file: Place

    def source(self, index: int) -> Any:
        """The parsed offset of a source, None where it has none (yet); raises CheckpointUnreadable."""
        text = self.sources[index] if index < len(self.sources) else None
        return None if text is None else _parse(text, self.file)


@dataclass(frozen=True)
class SeenFile:
    """A file that a file source has taken in. ``timestamp``: its modification time in ms; ``batch_id``: the source's own."""

    path: str
    timestamp: int
    batch_id: int


def committed_batches(checkpoint: Place) -> list[int]:
    """The batches that are both planned and committed, ascending."""
    return sorted(numbered(checkpoint / "offsets") & numbered(checkpoint / "commits"))


def last_committed_batch(checkpoint: Place) -> int | None:
    """The last batch that is complete, or None."""
    return max(committed_batches(checkpoint), default=None)


def last_planned_batch(checkpoint: Place) -> int | None:
    """The last batch that was begun, done or not, or None."""
    return max(numbered(checkpoint / "offsets"), default=None)


def read_offsets(checkpoint: Place, batch_id: int) -> BatchOffsets:
    """The offset log's entry of a batch.

    Raises:
        CheckpointUnreadable: it is missing or damaged.
        StorageNotReadable: it is there, and may not be read.
    """
    file = checkpoint / "offsets" / str(batch_id)
    lines = _lines(file)
    if len(lines) < 2:
        raise CheckpointUnreadable("The offset file ends too early.", where=file, remedy=_REMEDY)
    metadata = _parse(lines[1], file) if lines[1].strip() else {}
    if not isinstance(metadata, dict):
        raise CheckpointUnreadable(
            "The offset file's second line is not a JSON object.", where=file, remedy=_REMEDY
        )
    return BatchOffsets(batch_id, metadata, tuple(None if line == "-" else line for line in lines[2:]), file)


def settings_of(entry: BatchOffsets) -> dict[str, str]:
    """The settings of Spark that an entry has for its batch and those after it."""
    conf = entry.metadata.get("conf")
    return {str(key): str(value) for key, value in conf.items()} if isinstance(conf, dict) else {}


def committed_offsets(checkpoint: Place) -> BatchOffsets | None:
    """Where the sources stood after the last committed batch, or None where there was none."""
    batch_id = last_committed_batch(checkpoint)
    return None if batch_id is None else read_offsets(checkpoint, batch_id)


def kafka_initial_offset(checkpoint: Place, source: int = 0) -> Any:
    """Where a Kafka source began (it is kept before the first batch), or None where it has not begun."""
    file = checkpoint / "sources" / str(source) / "0"
    if not file.is_file():
        return None
    # The byte before the version mark is for readers of very old Spark versions.
    text = _text(file).removeprefix("\0")
    if not text.startswith("v1\n"):
        raise CheckpointUnreadable("The Kafka source's first offset is damaged.", where=file, remedy=_REMEDY)
    return _parse(text.removeprefix("v1\n"), file)


def query_id(checkpoint: Place) -> str | None:
    """The id of the query that the checkpoint belongs to, or None where there is none yet."""
    file = checkpoint / "metadata"
    if not file.is_file():
        return None
    metadata = _parse(_text(file), file)
    if not isinstance(metadata, dict) or not isinstance(metadata.get("id"), str):
        raise CheckpointUnreadable("The metadata file holds no query id.", where=file, remedy=_REMEDY)
    return str(metadata["id"])


def watermark_ms(checkpoint: Place) -> int | None:
    """The event-time watermark after the last committed batch (ms since 1970), None where there is none."""
    batch_id = last_committed_batch(checkpoint)
    if batch_id is None:
        return None
    file = checkpoint / "commits" / str(batch_id)
    lines = _lines(file)
    data = _parse(lines[1], file) if len(lines) > 1 else {}
    return int(data.get("nextBatchWatermarkMs", 0)) or None if isinstance(data, dict) else None


def files_seen(checkpoint: Place, source: int = 0, *, up_to: int | None = None) -> list[SeenFile]:
    """The files that a file source took in, up to its own batch ``up_to`` (``logOffset`` of a committed offset)."""
    folder = checkpoint / "sources" / str(source)
    names = {name for name in _names(folder) if not name.startswith(".")}
    compacts = [int(n.removesuffix(".compact")) for n in names if n.endswith(".compact") and n[:-8].isdigit()]
    newest = max(compacts, default=-1)
    later = sorted(int(name) for name in names if name.isdigit() and int(name) > newest)
    files = [folder / f"{newest}.compact"] if compacts else []
    files += [folder / str(number) for number in later]
    read_ahead(files)
    seen: dict[str, SeenFile] = {}
    for file in files:
        for entry in read_file_log_entry(file):
            if up_to is None or entry.batch_id <= up_to:
                seen[entry.path] = entry
    return list(seen.values())


def read_file_log_entry(file: Place) -> list[SeenFile]:
    """The files that an entry of a file source's log names.

    Raises:
        CheckpointUnreadable: it is missing or damaged.
        StorageNotReadable: it is there, and may not be read.
    """
    return [_seen_file(_parse(line, file), file) for line in _lines(file)[1:]]


def file_log_entries(checkpoint: Place, source: int) -> tuple[int, set[int]]:
    """The newest compacted entry of a file source's log (-1 for none), and the plain entries."""
    folder = checkpoint / "sources" / str(source)
    names = _names(folder)
    compacts = [int(n[:-8]) for n in names if n.endswith(".compact") and n[:-8].isdigit()]
    return max(compacts, default=-1), {int(name) for name in names if name.isdigit()}


def entry_path(data: Any) -> str:
    """The path in a line of the file source's log."""
    return _decoded(str(data["path"]))


def _seen_file(data: Any, file: Place) -> SeenFile:
    try:
        return SeenFile(_decoded(str(data["path"])), int(data["timestamp"]), int(data["batchId"]))
    except (KeyError, TypeError, ValueError):
        raise CheckpointUnreadable(
            "A line of the file source's log is not an entry.", where=file, remedy=_REMEDY
        ) from None


def _decoded(uri: str) -> str:
    # Spark writes the path as a URI: blanks and non-ASCII letters are percent-encoded.
    # A question mark in a file's name is encoded too: what follows one is a mark of ours (file_source_log).
    uri, sign, mark = uri.partition("?")
    url = urlparse(uri)
    return (unquote(url.path) if url.scheme in ("", "file") else unquote(uri)) + sign + mark


def numbered(folder: Place) -> set[int]:
    """The numbers that are names of files in a folder of Spark's (batches), empty where there is no folder."""
    return {int(name) for name in _names(folder) if name.isdigit()}


def committed_at(checkpoint: Place, batch_id: int) -> float | None:
    """When a batch was committed (seconds since 1970), None where its mark is gone: Spark keeps the last hundred."""
    try:
        return (checkpoint / "commits" / str(batch_id)).stat().st_mtime
    except FileNotFoundError:
        return None


def _names(folder: Place) -> list[str]:
    """The names in a folder, none where there is none; it may be removed, or replaced by a file, at any time."""
    try:
        return names_in(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise not_readable(folder, "where the flow stands", error) from None


def _text(file: Place) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError, UnicodeDecodeError) as error:
        raise CheckpointUnreadable(
            f"A file of the checkpoint can't be read: {error}.", where=file, remedy=_REMEDY
        ) from None
    except OSError as error:
        raise not_readable(file, "where the flow stands", error) from None


def _lines(file: Place) -> list[str]:
    lines = lines_of(_text(file))
    if not lines or lines[0] != "v1":
        shown = repr(lines[0][:20]) if lines else "nothing (the file is empty)"
        raise CheckpointUnreadable(f"Expected 'v1' at the start, found {shown}.", where=file, remedy=_REMEDY)
    return lines


def _parse(text: str, file: Place) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise CheckpointUnreadable("The file is cut off, or not JSON.", where=file, remedy=_REMEDY) from None
