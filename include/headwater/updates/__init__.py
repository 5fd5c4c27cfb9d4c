"""Updates before they are Spark's: whether there is anything to do, and the record of those that find nothing."""
