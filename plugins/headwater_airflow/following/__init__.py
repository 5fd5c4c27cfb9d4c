"""What a task knows of an update that another process runs."""
