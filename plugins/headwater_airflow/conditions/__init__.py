"""What sensors wait for: each a few plain values that a triggerer can be given, and one look at durable state."""
