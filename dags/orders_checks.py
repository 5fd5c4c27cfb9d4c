"""The checks of the pipeline ``orders``: their limits are in its ``pipeline.yml``."""

from headwater_airflow.dag import PipelineCheckDag

dag = PipelineCheckDag("orders")
