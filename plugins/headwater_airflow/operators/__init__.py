"""What runs a pipeline, follows its tables, and checks its lag."""
