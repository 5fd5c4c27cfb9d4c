"""``format("cloudFiles")``: Auto Loader's face over Spark's own file source."""
