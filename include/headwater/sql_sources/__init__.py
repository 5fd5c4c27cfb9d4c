"""SQL source files: their statements, read without Spark into what they declare (decision 0159)."""
