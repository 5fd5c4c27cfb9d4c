"""Backfills: a table's definition read as a bounded batch, and written beside the live stream."""
