"""What flows read."""
