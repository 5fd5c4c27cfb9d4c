"""What the stack needs to run: Java, the pinned jars, free ports."""
