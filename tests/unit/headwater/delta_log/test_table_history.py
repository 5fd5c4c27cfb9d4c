"""A table's log tells whether there is a table, and who wrote to it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake
from tests.unit.headwater_spark.written_table import commit as written

from headwater.delta_log.commits import commit_file
from headwater.delta_log.table_history import (
    TRANSACTION_RETENTION,
    deletes_kept_since,
    epochs_written,
    has_transaction,
    head_version,
    kept_out_since,
    last_batch,
    missing_versions,
    readable_table_id,
    table_exists,
    table_id,
    transaction_version,
)
from headwater.errors import SourceUnreachable


def commit(table: Path, metadata: str | None) -> None:
    """Append a row, with or without user metadata."""
    properties = (
        CommitProperties(custom_metadata={"userMetadata": metadata}) if metadata is not None else None
    )
    write_deltalake(str(table), pa.table({"id": [1]}), mode="append", commit_properties=properties)


def by(pipeline: str, flow: str, epoch: object) -> str:
    """The metadata of a flow's commit."""
    return json.dumps({"pipeline": pipeline, "flow": flow, "epoch": epoch})


def test_a_table_is_there_with_its_first_commit(tmp_path: Path):
    """A folder, and a folder with an empty log, are not tables."""
    table = tmp_path / "t"
    assert not table_exists(table)
    (table / "_delta_log").mkdir(parents=True)
    (table / "_delta_log" / ".00000000000000000000.json.tmp").touch()
    assert not table_exists(table)
    commit(table, None)
    assert table_exists(table)


@pytest.mark.parametrize("foreign", [None, "by hand", "[1]", "{}", by("p", "f", "x")])
def test_epochs_of_one_flow(tmp_path: Path, foreign: str | None):
    """Only commits of this pipeline and flow count; those of others may say anything."""
    table = tmp_path / "t"
    assert epochs_written(table, "p", "f") == []
    for metadata in (
        by("p", "f", 2),
        foreign,
        by("p", "f", 0),
        by("q", "f", 5),
        by("p", "g", 6),
        by("p", "f", 2),
    ):
        commit(table, metadata)
    assert epochs_written(table, "p", "f") == [0, 2]


def test_a_table_and_its_transactions(tmp_path: Path):
    """What is not a table has no id, no version and no transaction; a table's transactions are known up to the last batch."""
    table = tmp_path / "t"
    assert (readable_table_id(table), head_version(table), has_transaction(table, "a", 0)) == (
        None,
        -1,
        False,
    )
    known = CommitProperties(app_transactions=[Transaction("a", 3)])
    write_deltalake(str(table), pa.table({"id": [1]}), commit_properties=known)
    assert (table_id(table), head_version(table)) == (readable_table_id(table), 0)
    assert [has_transaction(table, "a", batch) for batch in (2, 3, 4)] == [True, True, False]
    assert not has_transaction(table, "b", 0)
    assert transaction_version(table, "a") == 3


def test_a_damaged_log_is_no_missing_table(tmp_path: Path):
    """Who writes hears of a log that can't be read, and does not take it for a table without the batch; checks go on."""
    table = tmp_path / "t"
    commit(table, None)
    (table / "_delta_log" / f"{0:020d}.json").write_text("{")
    with pytest.raises(SourceUnreachable, match="can't be read"):
        has_transaction(table, "a", 0)
    with pytest.raises(SourceUnreachable):
        readable_table_id(table)
    assert (table_id(table), transaction_version(table, "a")) == (None, None)


def test_a_hole_in_a_log(tmp_path: Path):
    """What retention takes at the beginning is none; a checkpoint whose commit is gone is still the head."""
    assert missing_versions(tmp_path) == []
    for _ in range(7):
        written(tmp_path)
    for version in (0, 1, 2, 5):
        commit_file(tmp_path, version).unlink()
    assert missing_versions(tmp_path) == [5]
    assert head_version(tmp_path) == 6
    (tmp_path / "_delta_log" / f"{8:020d}.checkpoint.parquet").write_text("")
    (tmp_path / "_delta_log" / f"{9:020d}.crc").write_text("")
    assert head_version(tmp_path) == 8


@pytest.mark.parametrize(
    ("about", "kept"),
    [
        ({"quality": {"quarantined": 2}}, True), ({"quality": {"files": 1}}, True), ({"quality": {"quarantined": 0, "files": 0}}, False),
        ({"quality": {"quarantined": 2}, "epoch": 1}, False), ({"quality": {"quarantined": 2}, "flow": "other"}, False),
        ({"quality": {"quarantined": 2}, "pipeline": "other"}, False), ({}, False), ({"quality": "much"}, False),
    ],
)  # fmt: skip
def test_what_commits_say_of_rows_that_were_kept_out(tmp_path: Path, about: dict[str, object], kept: bool):
    """Those of the flow's own epoch, behind the version that the last run left; files count as rows do."""
    written(tmp_path, metadata={"pipeline": "p", "flow": "f", "epoch": 0, "quality": {"quarantined": 9}})
    written(tmp_path, metadata={"pipeline": "p", "flow": "f", "epoch": 0, **about})
    assert kept_out_since(tmp_path, "p", "f", 0, 0) is kept
    assert not kept_out_since(tmp_path, "p", "f", 0, 1)
    assert kept_out_since(tmp_path, "p", "f", 0, -1)


def test_what_commits_say_of_deletes(tmp_path: Path):
    """A delete that was remembered beside the table; other counts of change events say nothing of it."""
    for changes in ({"tombstones": 0, "superseded": 4}, {"tombstones": 1}):
        written(tmp_path, metadata={"pipeline": "p", "flow": "f", "epoch": 0, "changes": changes})
    assert deletes_kept_since(tmp_path, "p", "f", 0, 0)
    assert not deletes_kept_since(tmp_path, "p", "f", 0, 1)
    assert not deletes_kept_since(tmp_path, "p", "f", 1, -1)


@pytest.mark.parametrize(("retention", "last"), [({TRANSACTION_RETENTION: "interval 1 day"}, 4), ({}, None)])
def test_a_table_that_forgets_its_transactions(tmp_path: Path, retention: dict[str, str], last: int | None):
    """Its commits still name the batch, the newest of them first; another table has all that it ever had."""
    for batch in (3, 4):
        written(tmp_path, transactions={"p.f@0": batch})
    written(tmp_path, transactions={"p.g@0": 9})
    opened = SimpleNamespace(
        transaction_version=lambda _: None, metadata=lambda: SimpleNamespace(configuration=retention)
    )
    assert last_batch(opened, tmp_path, "p.f@0") == last
