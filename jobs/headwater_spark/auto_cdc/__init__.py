"""AUTO CDC on Delta: change events merged into a table so that no order of arrival changes the result."""
