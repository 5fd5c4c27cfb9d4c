"""A stream of small batches, one file each, as one writes it by hand."""

import sys


def main(spark, landing, root):
    """Take in what is new."""
    rows = spark.readStream.schema("id LONG, customer STRING").option("maxFilesPerTrigger", 1).json(landing)
    query = (
        rows.writeStream.format("delta")
        .option("checkpointLocation", f"{root}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{root}/table")
    )
    query.awaitTermination()


if __name__ == "__main__":
    from spark import session

    spark = session()
    main(spark, *sys.argv[1:])
    spark.stop()
