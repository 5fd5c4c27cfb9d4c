"""Repairs of the checkpoints of the pipeline ``orders``, by a form; the plan is in the log of `plan`."""

from headwater_airflow.dag import PipelineRepairDag

dag = PipelineRepairDag("orders")
