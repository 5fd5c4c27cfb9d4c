"""Rules by hand: filters for the good rows, and a second stream for the bad ones."""

from pyspark.sql import functions as F


def good_rows(rules):
    """The condition of rows that break no rule; NULL breaks none."""
    return F.expr(" AND ".join(f"coalesce({rule}, true)" for rule in rules.values()))


def split(rows, rules):
    """The good rows, and the bad ones with a reason."""
    good = good_rows(rules)
    return rows.where(good), rows.where(~good).withColumn("error_reason", F.lit("rules"))


def two_streams(valid, invalid, root):
    """Write both side by side, each with its checkpoint and its table."""
    queries = [
        part.writeStream.format("delta")
        .option("checkpointLocation", f"{root}/checkpoint-{name}")
        .trigger(availableNow=True)
        .start(f"{root}/{name}")
        for name, part in (("table", valid), ("dlq", invalid))
    ]
    for query in queries:
        query.awaitTermination()
