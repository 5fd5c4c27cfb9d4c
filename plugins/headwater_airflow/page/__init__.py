"""The page in Airflow's web interface: what is true of each pipeline now, read from what is on disk; no JVM."""
