"""The right to write: one holder at a time, on a disk or on an object store."""
