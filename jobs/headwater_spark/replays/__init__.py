"""Replays: quarantined rows and files are run through their flow again."""
