"""The DAGs of all pipelines below ``jobs/pipelines``: updates, checks, maintenance, backfills and repairs.

Everything in them comes from each pipeline's ``pipeline.yml`` and ``manifest.json``. One that can't be read is an import error of its own.
"""

from headwater_airflow.pipelines import pipeline_dags

globals().update(pipeline_dags())
