"""Quarantine tables, as they are read and marked without Spark."""
