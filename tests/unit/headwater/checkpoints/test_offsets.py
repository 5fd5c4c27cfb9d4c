"""Reading checkpoints as Spark leaves them, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.checkpoints import offsets
from headwater.errors import CheckpointUnreadable

METADATA = (
    '{"batchWatermarkMs":0,"batchTimestampMs":1795261373630,"conf":{"spark.sql.shuffle.partitions":"2"}}'
)
KAFKA = '{"ev":{"0":3200,"1":4800}}'


def plan(folder: Path, batch: int, *lines: str) -> None:
    (folder / "offsets").mkdir(parents=True, exist_ok=True)
    (folder / "offsets" / str(batch)).write_text("\n".join(("v1", METADATA, *lines)))


def commit(folder: Path, batch: int, watermark: int = 0) -> None:
    (folder / "commits").mkdir(parents=True, exist_ok=True)
    (folder / "commits" / str(batch)).write_text(f'v1\n{{"nextBatchWatermarkMs":{watermark}}}')


def test_nothing_there(tmp_path):
    """A checkpoint that was never written has no batch, no offsets, no query and no files."""
    gone = tmp_path / "none"
    assert offsets.last_committed_batch(gone) is None
    assert offsets.committed_offsets(gone) is None
    assert offsets.query_id(gone) is None
    assert offsets.files_seen(gone) == []


@pytest.mark.parametrize("text", ["[]", "{}", '{"id": 7}', '{"id": null}', "7"])
def test_metadata_without_an_id(tmp_path, text: str):
    """It names no query: to take it for one without an id would begin a new one."""
    (tmp_path / "metadata").write_text(text)
    with pytest.raises(CheckpointUnreadable, match="holds no query id"):
        offsets.query_id(tmp_path)


def test_last_batch_needs_both_logs(tmp_path):
    """A batch counts only where it is planned and committed, not where its plan is lost; temporary files beside do not confuse."""
    for batch in (9, 10, 11):
        plan(tmp_path, batch, KAFKA)
    commit(tmp_path, 9)
    commit(tmp_path, 10, 1234)
    commit(tmp_path, 12)
    (tmp_path / "offsets" / ".11.5d.tmp").write_text("")
    (tmp_path / "commits" / ".10.crc").write_bytes(b"\x00")
    assert offsets.last_committed_batch(tmp_path) == 10
    assert offsets.watermark_ms(tmp_path) == 1234
    committed = offsets.committed_offsets(tmp_path)
    assert committed is not None
    assert committed.metadata["conf"]["spark.sql.shuffle.partitions"] == "2"
    assert committed.source(0) == {"ev": {"0": 3200, "1": 4800}}


def test_several_sources_and_one_unread(tmp_path):
    """Each source has its line, and a dash means that it was not read yet."""
    plan(tmp_path, 0, "-", '{"logOffset":3}')
    commit(tmp_path, 0)
    committed = offsets.committed_offsets(tmp_path)
    assert committed is not None
    assert (committed.source(0), committed.source(1), committed.source(7)) == (None, {"logOffset": 3}, None)


@pytest.mark.parametrize("text", ["", "v1", "v2\n{}\n{}", 'v1\n{"batchWater', "v1\n[]\n{}", "\x00\x00"])
def test_damaged_offset_file_is_told(tmp_path, text):
    """An empty, cut or foreign offset file is an error that names the file."""
    plan(tmp_path, 0)
    (tmp_path / "offsets" / "0").write_text(text)
    commit(tmp_path, 0)
    with pytest.raises(CheckpointUnreadable, match="offsets/0"):
        offsets.committed_offsets(tmp_path)


def test_damaged_source_line_is_told(tmp_path):
    """A source's offset that is cut off is an error when it is asked for."""
    plan(tmp_path, 0, '{"ev":{"0":32')
    commit(tmp_path, 0)
    committed = offsets.committed_offsets(tmp_path)
    assert committed is not None
    with pytest.raises(CheckpointUnreadable):
        committed.source(0)


def test_query_id(tmp_path):
    """The query id is read from the metadata file; a cut one is an error."""
    (tmp_path / "metadata").write_text('{"id":"0b9ad8bc-7a2f-4c0c-8b8c-8f9f8f3f4e2e"}')
    assert offsets.query_id(tmp_path) == "0b9ad8bc-7a2f-4c0c-8b8c-8f9f8f3f4e2e"
    (tmp_path / "metadata").write_text('{"id":')
    with pytest.raises(CheckpointUnreadable):
        offsets.query_id(tmp_path)


def entry(name: str, batch: int) -> str:
    return f'{{"path":"file:///data/{name}","timestamp":{1000 + batch},"batchId":{batch}}}'


def test_files_seen_over_a_compacted_log(tmp_path):
    """The newest compact file stands for all before it, later entries add to it, and names are decoded."""
    folder = tmp_path / "sources" / "0"
    folder.mkdir(parents=True)
    (folder / "8").write_text("v1\n" + entry("old.json", 8))
    (folder / "9.compact").write_text("\n".join(["v1", entry("a%20b.json", 0), entry("c%25.json", 9)]))
    (folder / "10").write_text("v1\n" + entry("d.json", 10))
    (folder / ".10.crc").write_bytes(b"x")
    assert [f.path for f in offsets.files_seen(tmp_path)] == [
        "/data/a b.json",
        "/data/c%.json",
        "/data/d.json",
    ]
    # A batch that was planned and never committed will be read again.
    assert [f.path for f in offsets.files_seen(tmp_path, up_to=9)] == ["/data/a b.json", "/data/c%.json"]


def test_damaged_file_log_is_told(tmp_path):
    """An empty or foreign log of a file source is an error."""
    folder = tmp_path / "sources" / "0"
    folder.mkdir(parents=True)
    for text in ("", 'v1\n{"path":1}', "v1\n{"):
        (folder / "0").write_text(text)
        with pytest.raises(CheckpointUnreadable):
            offsets.files_seen(tmp_path)


def test_kafka_start_before_the_first_batch(tmp_path):
    """Where a Kafka source began is known before its first batch; a damaged entry is an error."""
    assert offsets.kafka_initial_offset(tmp_path) is None
    folder = tmp_path / "sources" / "0"
    folder.mkdir(parents=True)
    (folder / "0").write_bytes(b'\x00v1\n{"ev":{"0":5}}')
    assert offsets.kafka_initial_offset(tmp_path) == {"ev": {"0": 5}}
    (folder / "0").write_bytes(b'\x00v1\n{"ev"')
    with pytest.raises(CheckpointUnreadable):
        offsets.kafka_initial_offset(tmp_path)


def test_a_file_that_is_none(tmp_path):
    """A folder in its place, or bytes that are no text, are damage: storage that is away for a moment, or a missing right, is not."""
    (tmp_path / "offsets" / "0").mkdir(parents=True)
    (tmp_path / "offsets" / "1").write_bytes(b"v1\n\xff")
    for batch in (0, 1):
        with pytest.raises(CheckpointUnreadable, match="can't be read"):
            offsets.read_offsets(tmp_path, batch)


def test_the_newest_of_several_compacted_logs(tmp_path):
    """It stands for the others, which Spark removes some time later; files of other names are none."""
    folder = tmp_path / "sources" / "0"
    folder.mkdir(parents=True)
    for name in ("9.compact", "19.compact", "x.compact", "18", "20", ".20.crc"):
        (folder / name).write_text("v1\n" + entry(f"{name}.json", 3))
    assert offsets.file_log_entries(tmp_path, 0) == (19, {18, 20})
    assert [f.path for f in offsets.files_seen(tmp_path)] == ["/data/19.compact.json", "/data/20.json"]
    assert offsets.file_log_entries(tmp_path, 1) == (-1, set())


@pytest.mark.parametrize(
    ("mark", "watermark"),
    [('v1\n{"nextBatchWatermarkMs":5}', 5), ('v1\n{"nextBatchWatermarkMs":0}', None), ("v1\n{}", None), ("v1", None), ("v1\n[]", None)],
)  # fmt: skip
def test_the_watermark_of_a_mark(tmp_path, mark: str, watermark: int | None):
    """A mark that says none, or that has no second line, has none."""
    assert offsets.watermark_ms(tmp_path) is None
    plan(tmp_path, 0, KAFKA)
    commit(tmp_path, 0)
    (tmp_path / "commits" / "0").write_text(mark)
    assert offsets.watermark_ms(tmp_path) == watermark
