"""Commits to Delta tables: a batch's identity, and the ways in which its rows are written once."""
