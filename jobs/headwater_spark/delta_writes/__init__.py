"""Commits to Delta tables: a batch's identity, and the ways to write its rows exactly once."""
