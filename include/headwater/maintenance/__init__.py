"""Upkeep of tables and storage: what is due, whom it must not harm, and doing it."""
