from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ChangeFlow:
    """How rows of a source change a target: the arguments of AUTO CDC, not yet checked against any schema.

    Columns are as the user gave them: names, SQL text, or Spark columns (kept as they are; only the engine reads them).
    ``columns`` and ``except_columns``: the columns that the target keeps; at most one of the two is given.
    ``columns_to_update``: a column of the event with the names of the columns that it sets.
    ``hydrates``: the rows are those of the target's own query, which are there before any change. Lists may name columns
    that only the changes have.
    ``system_sequence_by``: of a bitemporal history, since when an event is known.
    ``ignore_nulls``: a null leaves the value as it was; the two lists narrow that to some columns.
    """

    source: str
    keys: tuple[Any, ...]
    sequence_by: Any
    apply_as_deletes: Any = None
    apply_as_truncates: Any = None
    columns: tuple[Any, ...] | None = None
    except_columns: tuple[Any, ...] | None = None
    ignore_nulls: bool = False
    ignore_nulls_columns: tuple[Any, ...] | None = None
    ignore_nulls_except: tuple[Any, ...] | None = None
    columns_to_update: Any = None
    history: bool = False
    tracked_columns: tuple[Any, ...] | None = None
    untracked_columns: tuple[Any, ...] | None = None
    hydrates: bool = False
    system_sequence_by: Any = None
