"""Backfills of the pipeline ``orders``: its form, and the days of Airflow's own backfill."""

from headwater_airflow.dag import PipelineBackfillDag

dag = PipelineBackfillDag("orders", interval="@daily", tables=["clicks_bronze"], column="clicked_at")
