"""Queries that were written for Lakeflow's event log, on ours."""
