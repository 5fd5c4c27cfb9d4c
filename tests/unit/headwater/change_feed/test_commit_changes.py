"""What a commit did to the rows of a table."""

from __future__ import annotations

import pytest

from headwater.change_feed.commit_changes import commit_changes
from headwater.change_feed.counts import ChangeCounts
from headwater.delta_log.commits import newest_version
from headwater.errors import SourceUnreachable


def counts(orders, columns=()):
    return commit_changes(orders.path, orders.version, columns).counts


def test_every_kind_of_change_is_counted_from_the_change_feed(orders):
    """Inserts, updates and deletes by append, update, merge and delete are as many as there were."""
    orders.append(range(10))
    assert counts(orders) == ChangeCounts(insert=10)
    orders.delta.update(updates={"amount": "7"}, predicate="id < 3")
    assert counts(orders) == ChangeCounts(update=3)
    orders.merge([8, 9, 10])
    assert counts(orders) == ChangeCounts(insert=1, update=2)
    orders.delta.delete("id = 0")
    assert counts(orders) == ChangeCounts(delete=1)


def test_without_a_change_feed_the_commands_own_counts_tell(orders_without_feed):
    """Files are rewritten whole, and yet only the rows that changed count; rows can't be read, and that is noted."""
    orders = orders_without_feed
    orders.append(range(10))
    orders.delta.update(updates={"amount": "7"}, predicate="id < 3")
    changes = commit_changes(orders.path, orders.version)
    assert (changes.counts, changes.rewrites) == (ChangeCounts(update=3), True)
    orders.delta.delete("id < 2")
    assert counts(orders) == ChangeCounts(delete=2)
    orders.merge([8, 9, 10])
    assert counts(orders) == ChangeCounts(insert=1, update=2)


def test_files_that_are_only_moved_change_nothing(orders):
    """Optimize rewrites files, vacuum removes them: no row has changed."""
    for start in (0, 5):
        orders.append(range(start, start + 5))
    before = orders.version
    orders.delta.optimize.compact()
    orders.delta.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert orders.version > before
    for version in range(before + 1, orders.version + 1):
        changes = commit_changes(orders.path, version)
        assert (changes.changes_data, changes.counts) == (False, ChangeCounts())


def test_an_overwrite_deletes_and_inserts(orders):
    """All rows of before are gone, those of after are new; what the log does not tell is not guessed."""
    orders.append(range(4))
    orders.overwrite(range(6))
    changes = counts(orders)
    assert changes.insert == 6
    assert changes.delete in (4, None)


def test_updates_of_other_columns_do_not_count(orders):
    """Of five updates, two change the amount."""
    orders.append(range(5))
    orders.delta.update(updates={"amount": "case when id < 2 then 9 else amount end", "note": "'seen'"})
    assert counts(orders).update == 5
    assert counts(orders, ["amount"]).update in (2, 5)  # 5 where images are not side by side
    assert counts(orders, ["nothing"]).update == 5


def test_a_commit_that_is_gone_and_one_that_is_damaged(orders):
    """A cleaned log gives nothing; half a file is an error that a later try may not see."""
    orders.append([1])
    assert commit_changes(orders.path, 5) is None
    (orders.path / "_delta_log" / f"{1:020d}.json").write_text('{"add": {')
    with pytest.raises(SourceUnreachable, match="can't be read"):
        commit_changes(orders.path, 1)


def test_the_newest_version_is_that_of_the_newest_commit(orders):
    """Checkpoints, checksums and temporary files are not versions; where there is no table, there are none."""
    assert newest_version(orders.path) is None
    orders.append([1])
    orders.append([2])
    log = orders.path / "_delta_log"
    for name in (f"{9:020d}.checkpoint.parquet", f"{9:020d}.crc", "_last_checkpoint", f"{9:020d}.json.tmp"):
        (log / name).touch()
    assert newest_version(orders.path) == 1
