"""What a DAG can wait for."""
