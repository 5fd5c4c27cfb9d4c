"""What rows must satisfy, and what happens to those that do not."""
