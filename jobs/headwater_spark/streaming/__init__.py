"""Structured Streaming without a pipeline: the functions that guides write by hand, with their traps solved."""

from headwater_spark.streaming.dead_letters import process_stream_with_dlq
from headwater_spark.streaming.kafka_ingestion import ingest_kafka_events
from headwater_spark.streaming.retries import start_streaming_with_retry
from headwater_spark.streaming.upserts import upsert_changes

__all__ = ["ingest_kafka_events", "process_stream_with_dlq", "start_streaming_with_retry", "upsert_changes"]
