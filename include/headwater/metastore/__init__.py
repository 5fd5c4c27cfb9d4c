"""Tables in a Hive metastore: the path convention stays the truth, and entries follow it."""
