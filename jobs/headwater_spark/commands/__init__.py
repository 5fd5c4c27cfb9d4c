"""The answers of the programs under ``jobs/``: arguments in, report out."""
