"""How far behind the readers of tables are, and how old the tables: by Spark, and by delta-rs as one first thinks of it."""

import time


def by_spark(spark, tables):
    """Commits and rows after a version, and the age of the newest commit. ``tables``: the versions read, by folder."""
    from delta.tables import DeltaTable

    found = {}
    for table, version in tables.items():
        history = DeltaTable.forPath(spark, table).history()
        unread = history.where(f"version > {version}").selectExpr(
            "count(*) as commits", "sum(cast(operationMetrics['numOutputRows'] as bigint)) as rows", "max(timestamp) as newest"
        ).first()  # fmt: skip
        found[table] = (unread.commits, unread.rows, time.time() - unread.newest.timestamp())
    return found


def by_delta_rs(tables):
    """The same over the whole history of each table."""
    from deltalake import DeltaTable

    found = {}
    for table, version in tables.items():
        unread = [commit for commit in DeltaTable(table).history() if commit["version"] > version]
        rows = sum(int(commit["operationMetrics"]["numOutputRows"]) for commit in unread)
        newest = max(commit["timestamp"] for commit in unread) / 1000
        found[table] = (len(unread), rows, time.time() - newest)
    return found
