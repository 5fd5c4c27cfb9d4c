"""Rows that broke a rule and are quarantined: written beside their table, with the files that can't be read."""
