"""A view recomputed whole, as one writes it."""


def recompute(spark, text, folder):
    """Put the query's rows in place of the table's."""
    spark.sql(text).write.format("delta").mode("overwrite").save(str(folder))
