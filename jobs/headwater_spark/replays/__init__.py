"""Quarantined rows and files, run through their flow once more."""
