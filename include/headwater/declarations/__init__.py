"""The decorators and functions behind ``headwater.pipelines``: each checks its arguments and records a definition."""
