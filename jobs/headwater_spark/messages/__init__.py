"""What Spark and users' code throw, in words that say where and what to do."""
