"""Refreshing a materialized view by what changed: what is known without Spark."""
