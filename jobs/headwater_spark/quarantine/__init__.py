"""Rows that broke a rule and are kept: judged with their batch, written beside their table, and put back."""
