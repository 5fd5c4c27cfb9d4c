"""What Spark's plans and schemas say about a query."""
