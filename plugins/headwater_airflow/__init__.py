"""Airflow's floor of Headwater: DAGs, operators, sensors and triggers for pipelines. No Spark is imported here."""
