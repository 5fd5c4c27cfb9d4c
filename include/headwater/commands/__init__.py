"""The command line: ``python -m headwater VERB``. Only ``run`` and ``validate`` start a JVM, and by another process."""
