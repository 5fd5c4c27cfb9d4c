"""Headwater: streaming tables on Apache Spark and Delta Lake, scheduled and watched by Apache Airflow.

Users import one thing: ``from headwater import pipelines as dp``.

Decision 0152.
"""

__version__ = "0.1.0"
