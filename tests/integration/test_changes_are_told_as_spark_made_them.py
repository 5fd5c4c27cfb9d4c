"""The change feed that is read without a JVM is the one that Spark itself reads."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from headwater.change_feed.change_filter import ChangeFilter
from headwater.change_feed.change_range import FeedPosition, range_after
from headwater.change_feed.commit_changes import commit_changes
from headwater.change_feed.reading import arrow_table, spark_read
from headwater.delta_log.commits import newest_version

# What is done to the rows 0..99, and the rows that it inserts, updates and deletes.
COMMANDS = (
    ("INSERT INTO {t} SELECT id, id % 7, 'new' FROM range(100, 120)", (20, 0, 0)),
    ("UPDATE {t} SET amount = 50 WHERE id < 10", (0, 10, 0)),
    ("UPDATE {t} SET note = 'seen' WHERE id BETWEEN 10 AND 14", (0, 5, 0)),
    ("DELETE FROM {t} WHERE id >= 115", (0, 0, 5)),
    (
        "MERGE INTO {t} t USING (SELECT id, 99 AS amount, 'merged' AS note FROM range(110, 125)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id < 113 THEN UPDATE SET * WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
        (10, 3, 2),
    ),
    ("OPTIMIZE {t}", (0, 0, 0)),
    ("ALTER TABLE {t} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 30 days')", (0, 0, 0)),
    ("INSERT OVERWRITE {t} SELECT id, 1, 'whole' FROM range(0, 3)", (3, 0, 123)),
)

# Where vectors are on, what differs is how rows are deleted.
WITH_VECTORS = (
    ("DELETE FROM {t} WHERE id >= 95", (0, 0, 5)),
    (
        "MERGE INTO {t} t USING (SELECT id, 99 AS amount, 'merged' AS note FROM range(90, 105)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id < 93 THEN UPDATE SET * WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
        (10, 3, 2),
    ),
)


@pytest.fixture(scope="module", params=["files", "deletion vectors"])
def table(request, spark, tmp_path_factory):
    """A table that Spark has changed in every way, with rewritten files; and some ways again with deletion vectors."""
    path = tmp_path_factory.mktemp("feed") / "orders"
    name = f"delta.`{path}`"
    vectors = str(request.param == "deletion vectors").lower()
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, amount BIGINT, note STRING) USING delta TBLPROPERTIES "
        f"('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = '{vectors}')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, id % 7, 'old' FROM range(100)")
    versions = {}
    for command, _ in WITH_VECTORS if request.param == "deletion vectors" else COMMANDS:
        before = newest_version(path)
        spark.sql(command.format(t=name))
        versions[command] = range(before + 1, newest_version(path) + 1)
    return path, versions


def of_spark(spark, path):
    """How many changes of each type Spark reads, by version: all in one query."""
    rows = (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", 1)
        .load(str(path))
    )
    counts = rows.groupBy("_commit_version", "_change_type").count().collect()
    feed = defaultdict(Counter)
    for version, kind, count in counts:
        feed[version][kind] = count
    return feed


def test_counts_are_those_of_the_change_feed(table, spark):
    """Version by version, and each command did what it was meant to."""
    path, versions = table
    feeds = of_spark(spark, path)
    for command, (inserted, updated, deleted) in (*COMMANDS, *WITH_VECTORS):
        for version in versions.get(command, ()):
            counts, feed = commit_changes(path, version).counts, feeds[version]
            assert counts.insert == feed["insert"], command
            assert counts.update == feed["update_postimage"], command
            assert counts.delete in (feed["delete"], None), command
            if "OVERWRITE" not in command:
                assert (counts.insert, counts.update, counts.delete) == (inserted, updated, deleted), command


def test_rows_of_a_range_are_those_that_spark_reads(table, spark):
    """The Arrow table, the question for Spark, and Spark's own answer, over all commands."""
    path, _ = table
    head = range_after("shop.orders", path, None)
    feed_range = range_after("shop.orders", path, FeedPosition(head.table_id, 1))
    rows = arrow_table(path, feed_range).to_pylist()
    columns = ("id", "amount", "note", "_change_type", "_commit_version")
    asked = spark_read(path, feed_range).load(spark).select(*columns).collect()
    assert Counter(tuple(row[name] for name in columns) for row in rows) == Counter(map(tuple, asked))
    assert feed_range.end_version == newest_version(path)


def test_a_snapshot_has_the_rows_of_the_table(table, spark):
    """Also where some of its files' rows are deleted by vectors."""
    path, _ = table
    feed_range = range_after("shop.orders", path, None)
    rows = arrow_table(path, feed_range)
    assert rows.num_rows == spark_read(path, feed_range).load(spark).count() == feed_range.counts.insert > 0


@pytest.mark.parametrize("table", ["files"], indirect=True)
def test_updates_of_other_columns_wake_nobody(table):
    """Spark writes the rows before and after an update side by side: the column that changed is told apart."""
    path, versions = table
    of_amount, of_note = COMMANDS[1][0], COMMANDS[2][0]
    wanted = ChangeFilter.checked(["update"], ["amount"])
    for command, rows in ((of_amount, 10), (of_note, 0)):
        (version,) = versions[command]
        assert commit_changes(path, version, wanted.columns).counts.update == rows
