"""The event log: a Delta table with Lakeflow's columns that says what every update, flow and batch did."""
