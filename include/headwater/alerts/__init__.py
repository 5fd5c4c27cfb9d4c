"""Limits that are broken, and what has been told about them."""
