"""Kafka's brokers, as a client without Spark sees them."""
