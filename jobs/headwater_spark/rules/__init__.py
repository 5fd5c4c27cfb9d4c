"""What a row is held to, and what becomes of it."""
