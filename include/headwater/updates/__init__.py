"""Updates before Spark starts: whether there is anything to do, and the record of updates without work."""
