"""Maintenance of tables and storage: what is due, which readers it must not break, and carrying it out."""
