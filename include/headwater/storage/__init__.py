"""Where pipelines keep what is theirs: local folders, and object stores behind the same calls."""
