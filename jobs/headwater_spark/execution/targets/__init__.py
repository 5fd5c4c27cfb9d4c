"""The targets of ``foreachBatch``: one module for each kind."""
