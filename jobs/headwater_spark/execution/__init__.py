"""Run a plan: flows run concurrently in one session and end in Delta commits and event log records."""
