"""The maintenance of the pipeline ``orders``: what is due is in the log of `plan`."""

from headwater_airflow.dag import PipelineMaintenanceDag

dag = PipelineMaintenanceDag("orders")
