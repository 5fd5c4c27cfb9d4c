"""Running a pipeline's source files so that they declare their datasets."""
