"""What takes the batches of ``foreachBatch``: one module a kind."""
