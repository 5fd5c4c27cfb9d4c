"""What Spark and users' code raise, in messages that say where and what to do."""
