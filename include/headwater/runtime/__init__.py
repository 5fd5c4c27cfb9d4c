"""What the stack runs on: a Java, the pinned jars, free ports."""
