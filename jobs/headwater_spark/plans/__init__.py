"""Analysis of queries by Spark's plans and schemas."""
