"""What the floors say to each other, as models that both ends share."""
