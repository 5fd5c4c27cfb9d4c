"""Materialized views: after an update, the table equals its batch query."""
