"""Kafka's brokers, accessed by a client without Spark."""
