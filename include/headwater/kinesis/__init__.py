"""Amazon Kinesis: reaching streams, their shards, and where a batch of one ends. boto3 is imported on first use."""
