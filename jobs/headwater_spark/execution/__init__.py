"""Running a plan: flows side by side in one session, each ending in Delta commits and records of the event log."""
