"""The ``spark`` that a pipeline's sources see: a real session whose reads know the pipeline's datasets."""
