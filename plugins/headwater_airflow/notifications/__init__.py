"""Notifying people."""
