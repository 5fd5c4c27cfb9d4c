"""What the floors exchange, as models that both ends share."""
