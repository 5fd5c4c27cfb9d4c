"""Renaming a table, or moving it to another pipeline, with its checkpoints and its history."""
