"""A driver: how it is submitted, watched, and what its end means."""
