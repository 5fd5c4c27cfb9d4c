"""Limits that are broken, and which of them have been announced."""
