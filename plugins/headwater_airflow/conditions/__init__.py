"""What sensors wait for: each has a few plain values for the triggerer, and one look at durable state."""
