"""Data that a pipeline has not read yet, looked for without Spark: what wakes a DAG."""
