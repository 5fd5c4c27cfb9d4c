"""The DAG of the pipeline ``orders``: everything in it comes from ``jobs/pipelines/orders``."""

from headwater_airflow.dag import PipelineDag

dag = PipelineDag("orders")
