"""Findings of `validate` in a pipeline that can be run: from Spark's analysed plans, and from the sources' text."""
