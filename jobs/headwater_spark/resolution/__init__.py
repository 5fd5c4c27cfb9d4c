"""From recorded definitions to a resolved pipeline: functions are called; kinds, modes and columns are decided."""
