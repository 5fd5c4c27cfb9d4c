"""What is checked before a flow starts: position, table, sources and state must fit each other."""
