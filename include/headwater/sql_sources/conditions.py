"""Errors of SQL sources."""

from __future__ import annotations

from headwater.errors import InvalidPipeline


class SqlNotUnderstood(InvalidPipeline):
    """A statement of a SQL source is not of a form that pipelines have."""

    condition = "SQL_NOT_UNDERSTOOD"


class StatementNotAllowed(InvalidPipeline):
    """A statement of a SQL source would do something at once, where sources only declare."""

    condition = "STATEMENT_NOT_ALLOWED"
