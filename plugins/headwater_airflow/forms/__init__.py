"""What people fill in before a run: selection, backfill, repair."""
