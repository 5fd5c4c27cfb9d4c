"""Quarantine tables: reading and marking rows without Spark."""
