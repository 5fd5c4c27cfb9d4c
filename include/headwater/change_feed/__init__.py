"""What changed in a Delta table between two versions, read from its log without a JVM; and how far its readers are."""
