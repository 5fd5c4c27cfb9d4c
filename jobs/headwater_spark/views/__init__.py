"""Refreshing materialized views by what changed: what a query's plan allows, and the plans that follow from it."""
