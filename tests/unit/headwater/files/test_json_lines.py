"""Whatever a text holds, a line of JSON that quotes it is one line to every reader on the ground."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.change_feed.commit_changes import commit_changes
from headwater.change_feed.counts import ChangeCounts
from headwater.checkpoints.file_source_log import forget_overwritten
from headwater.checkpoints.log_entries import fault_of, put_back, rewrite_commit
from headwater.checkpoints.offsets import files_seen, kafka_initial_offset, read_offsets
from headwater.delta_log.commits import commit_file, commit_head, read_actions
from headwater.delta_log.table_history import flow_commits
from headwater.delta_log.versions import read_commit
from headwater.files.json_lines import lines_of
from headwater.maintenance.needed_files import needed_files
from headwater.maintenance.reader_positions import ReaderPosition

BREAKS = "\u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e\r\n"
# With the characters that some reader takes for an end of line far more often than chance would have them.
TEXTS = st.text(st.one_of(st.sampled_from(BREAKS + '"\\{}?%'), st.characters())) | st.just(
    "\ud800 half a pair"
)
RAW = [pytest.param(False, id="as Jackson writes it"), pytest.param(True, id="escaped")]


def line(value: object, *, ascii_only: bool) -> str:
    """JSON as Spark and Delta write it: raw, but for what JSON must escape (and half pairs, which UTF-8 can't hold)."""
    raw = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))
    return "".join(rf"\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in raw)


def write(file: Path, *lines: str, end: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(("\n".join(lines) + end).encode())


@pytest.mark.parametrize("ascii_only", RAW)
@settings(max_examples=50)
@given(text=TEXTS)
@example(text="\u2028 hi")
def test_a_commit_that_quotes_any_text(text: str, ascii_only: bool):
    """Actions, head, history, counts and needed files of a commit are what was written, whatever its statistics quote."""
    stats = line({"numRecords": 3, "maxValues": {"name": text}}, ascii_only=ascii_only)
    metadata = json.dumps(
        {"pipeline": "p", "flow": "f", "epoch": 0, "end_offsets": [text]}, ensure_ascii=False
    )
    actions = [
        {"commitInfo": {"operation": "WRITE", "userMetadata": metadata, "timestamp": 1}},
        {"txn": {"appId": text, "version": 7}},
        {"add": {"path": "a.parquet", "size": 5, "stats": stats, "dataChange": True}},
    ]
    with TemporaryDirectory() as folder:
        table = Path(folder)
        file = commit_file(table, 0)
        write(file, *(line(action, ascii_only=ascii_only) for action in actions), end="\n")
        assert read_actions(file) == actions
        assert commit_head(file).transactions == {text: 7}
        assert flow_commits(table, "p", "f")[0].end_offsets == (text,)
        commit = read_commit(table, 0)
        assert commit is not None
        assert [added.records for added in commit.added] == [3]
        changes = commit_changes(table, 0)
        assert changes is not None
        assert changes.counts == ChangeCounts(insert=3)


@pytest.mark.parametrize("ascii_only", RAW)
@settings(max_examples=50)
@given(text=TEXTS)
@example(text="\u0085")
def test_offsets_that_quote_any_text(text: str, ascii_only: bool):
    """Entries of the offset log and a Kafka source's first offset are read, found whole, and written back the same."""
    position = {text: {"0": 3}}
    entry = line(position, ascii_only=ascii_only)
    metadata = line({"batchWatermarkMs": 9, "conf": {"note": text}}, ascii_only=ascii_only)
    with TemporaryDirectory() as folder:
        checkpoint = Path(folder)
        write(checkpoint / "offsets" / "0", "v1", metadata, entry, "-")
        write(checkpoint / "sources" / "0" / "0", "v1", entry)
        assert fault_of(checkpoint / "offsets" / "0") is None
        read = read_offsets(checkpoint, 0)
        assert (read.source(0), read.source(1), len(read.sources)) == (position, None, 2)
        assert read.metadata["conf"]["note"] == text
        assert kafka_initial_offset(checkpoint) == position
        put_back(checkpoint, 1, None, {})
        assert (checkpoint / "offsets" / "1").read_bytes() == (checkpoint / "offsets" / "0").read_bytes()
        rewrite_commit(checkpoint, 0, 1)
        assert (checkpoint / "commits" / "0").read_text() == 'v1\n{"nextBatchWatermarkMs": 9}'


@pytest.mark.parametrize("ascii_only", RAW)
@settings(max_examples=50)
@given(text=TEXTS.filter(lambda text: not set(text) & set("?%#;")))
@example(text="\u2029")
def test_a_file_sources_log_that_quotes_any_text(text: str, ascii_only: bool):
    """Files whose names hold such characters are known, and the log of a forgotten one stays readable line by line."""
    names = [f"/in/{text}.json", "/in/other.json"]
    entries = [{"path": name, "timestamp": 5, "batchId": 0} for name in names]
    with TemporaryDirectory() as folder:
        checkpoint = Path(folder)
        write(checkpoint / "offsets" / "0", "v1", "{}", '{"logOffset":0}')
        write(checkpoint / "commits" / "0", "v1", "{}")
        write(
            checkpoint / "sources" / "0" / "0",
            "v1",
            *(line(entry, ascii_only=ascii_only) for entry in entries),
        )
        known = [file.path for file in files_seen(checkpoint)]
        assert len(known) == 2
        assert forget_overwritten(checkpoint, {known[0]: 9}) == [known[0]]
        assert [file.path for file in files_seen(checkpoint)] == [f"{known[0]}?superseded=5", known[1]]


@pytest.mark.parametrize("character", list(BREAKS))
def test_a_table_with_such_a_row(tmp_path: Path, character: str):
    """A real table whose greatest text begins with such a character: its commits can be read, and vacuum knows its files."""
    rows = pa.table({"id": [1], "amount": [1], "note": [f"{character} hi"]})
    write_deltalake(tmp_path, rows, mode="append")
    changes = commit_changes(tmp_path, 0)
    assert changes is not None
    assert changes.counts == ChangeCounts(insert=1)
    needed = needed_files(tmp_path, [ReaderPosition("a stream", 0)])
    (file,) = tmp_path.glob("*.parquet")
    assert file.name in needed


def test_ends_of_lines():
    """A line feed ends a line, alone or behind a carriage return; the last one begins no further line."""
    assert lines_of("") == []
    assert lines_of("a") == lines_of("a\n") == lines_of("a\r\n") == ["a"]
    assert lines_of("a\n\nb\r\n") == ["a", "", "b"]
    assert lines_of("a\rb\u2028c") == ["a\rb\u2028c"]
