"""``format("cloudFiles")``: Auto Loader's interface over Spark's own file source."""
