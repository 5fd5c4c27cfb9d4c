"""How a task follows an update that another process runs."""
