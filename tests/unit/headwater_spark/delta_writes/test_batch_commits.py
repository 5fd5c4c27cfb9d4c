"""Which commit belongs to which batch, and what it says of its rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.headwater_spark.written_table import commit

from headwater.delta_log.table_history import has_transaction, head_version
from headwater_spark.delta_writes import batch_commits as module
from headwater_spark.delta_writes.batch_commits import (
    BatchCommits,
    as_metadata,
    quality_details,
)
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.rules.expectations import Quality, RuleCounts


def test_a_commit_is_known_by_id_and_number(tmp_path: Path):
    """Of several ids of one flow each is looked for; ids of others are not; a batch without a commit has none."""
    commit(tmp_path)
    commit(tmp_path, transactions={"query": 4}, metrics={"numOutputRows": "3"})
    commit(tmp_path, transactions={"other": 5}, metrics={"numOutputRows": "9"})
    commits = BatchCommits(tmp_path, "query", "p.f@0")
    commit_ = commits.find(4)
    assert commit_ is not None
    assert (commit_.version, commit_.rows, commit_.upserted, commit_.deleted, commit_.counted) == (
        1,
        3,
        None,
        None,
        True,
    )
    assert commit_.timestamp == 1_700_000_000_001
    assert commits.find(5) is None
    commit(tmp_path, transactions={"p.f@0": 5}, metrics={"numOutputRows": "2"})
    later = commits.find(5)
    assert later is not None
    assert (later.version, later.rows) == (3, 2)


def test_how_far_back_is_looked(tmp_path: Path):
    """A batch of a killed driver is found 100 versions back, no more; from a known version on, where one is given."""
    for batch in range(103):
        commit(tmp_path, transactions={"q": batch})
    assert BatchCommits(tmp_path, "q").find(1) is None
    commit_ = BatchCommits(tmp_path, "q").find(2)
    assert commit_ is not None
    assert commit_.version == 2
    assert BatchCommits(tmp_path, "q", since=0).find(0) is not None
    assert BatchCommits(tmp_path, "q", since=1).find(0) is None
    assert BatchCommits(tmp_path, "q", since=1).find(1) is not None


def test_rows_of_a_merge(tmp_path: Path):
    """Inserted and updated rows are written, deleted ones went; rows that were only copied are neither."""
    metrics = {
        "numTargetRowsInserted": "2",
        "numTargetRowsUpdated": "3",
        "numTargetRowsDeleted": "4",
        "numOutputRows": "100",
        "numTargetRowsCopied": "95",
    }
    commit(tmp_path, transactions={"q": 0}, operation="MERGE", metrics=metrics)
    commit_ = BatchCommits(tmp_path, "q", since=0).find(0)
    assert commit_ is not None
    assert (commit_.rows, commit_.upserted, commit_.deleted) == (5, 5, 4)


def test_a_writer_that_does_not_count(tmp_path: Path):
    """Where Delta does not say how many rows came, nobody concludes that none did."""
    commit(tmp_path, transactions={"q": 0})
    commit_ = BatchCommits(tmp_path, "q", since=0).find(0)
    assert commit_ is not None
    assert (commit_.rows, commit_.counted, commit_.quality) == (0, False, None)


@given(
    st.integers(0, 50),
    st.integers(0, 50),
    st.integers(0, 9),
    st.dictionaries(st.text(min_size=1), st.integers(0, 50)),
)
def test_what_a_batch_came_to_survives_its_driver(dropped, quarantined, files, failed):
    """The quality that is written with a commit is the one that is read from it."""
    rows = 200
    rules = tuple(RuleCounts(name, rows - bad, bad) for name, bad in failed.items())
    before = Quality(rows, dropped, rules, quarantined, files)
    from headwater_spark.delta_writes.batch_commits import BatchCommit

    assert BatchCommit(0, 0, 0, metadata={"quality": as_metadata(before)}).quality == before


def test_what_is_recorded_of_a_quality():
    """Counts of rows, files where there are any, and passed and failed records of each rule of the dataset."""
    quality = Quality(5, 1, (RuleCounts("r", 3, 2),), 1, 0)
    assert quality_details(quality, "orders") == {
        "dropped": 1,
        "quarantined": 1,
        "quarantined_files": None,
        "expectations": [{"name": "r", "dataset": "orders", "passed_records": 3, "failed_records": 2}],
    }
    assert quality_details(Quality(0, 0, (), 0, 4), "orders")["quarantined_files"] == 4


@pytest.mark.parametrize(("last", "batch", "has"), [(3, 3, True), (3, 2, True), (3, 4, False), (0, 0, True)])
def test_whether_a_table_has_a_batch(tmp_path: Path, last: int, batch: int, has: bool):
    """The last number of an id is the last batch that is there; all before it are, too."""
    commit(tmp_path, transactions={"q": last})
    assert has_transaction(tmp_path, "q", batch) is has
    assert has_transaction(tmp_path, "r", batch) is False
    assert has_transaction(tmp_path / "none", "q", batch) is False


def test_the_newest_version(tmp_path: Path):
    """-1 where there is no table."""
    assert head_version(tmp_path) == -1
    commit(tmp_path)
    assert head_version(tmp_path) == 0


@pytest.mark.parametrize("operation", ["WRITE", "STREAMING UPDATE", "CREATE TABLE AS SELECT"])
def test_rows_of_a_commit_that_is_no_merge(tmp_path: Path, operation: str):
    """Delta counts them under one name, whichever writer it was; it has neither upserts nor deletes."""
    commit(tmp_path, operation=operation, transactions={"query": 4}, metrics={"numOutputRows": "3"})
    one = BatchCommits(tmp_path, "query").find(4)
    assert one is not None
    assert (one.rows, one.upserted, one.deleted, one.counted) == (3, None, None, True)


def test_metadata_that_is_added_counts():
    """What is added later stands in the place of what was there."""
    batch = BatchTransaction("p.f@0", 1, '{"flow": "f", "engine": "old"}').with_metadata(
        engine="merge", rows=2
    )
    assert json.loads(batch.user_metadata) == {"flow": "f", "engine": "merge", "rows": 2}


def test_each_commit_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A query may run for days: what was read of the log is not read again, and nothing before the first version that was to be read."""
    for batch in range(3):
        commit(tmp_path, transactions={"q": batch})
    read: list[str] = []
    head = module.commit_head
    monkeypatch.setattr(module, "commit_head", lambda file: read.append(file.name) or head(file))
    commits = BatchCommits(tmp_path, "q", since=1)
    assert [commits.find(batch) is None for batch in (0, 0, 2, 3, 3)] == [True, True, False, True, True]
    assert read == [f"{version:020d}.json" for version in (1, 2)]
