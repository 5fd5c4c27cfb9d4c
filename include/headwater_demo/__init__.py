"""The whole stack on one machine: a Kafka broker, Airflow, and sample data that keeps arriving.

Decision 0153.
"""
