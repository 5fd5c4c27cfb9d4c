"""Lag, freshness and news, from the Delta log, the checkpoint, the brokers and the file listing; never from Spark."""
