"""Views that are partitioned by a text: Delta has two texts as NULL there, so that a table knows less than its query says.

Rows of the three are one part of the view, that is replaced together; groups of them can't be told apart, and are not merged.

Decision 0210.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product

from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place
from headwater_spark.plans.partition_texts import STORED_AS_NULL

_ALIKE = (None, *STORED_AS_NULL)


def stored_alike(keys: Iterable[tuple[object, ...]], texts: Sequence[bool]) -> list[tuple[object, ...]]:
    """Keys, with all that are the same ones in the table; ``texts``: which of their values are texts that it is partitioned by."""
    alike: dict[tuple[object, ...], None] = {}
    for key in keys:
        alike[key] = None
        choices = [
            _ALIKE if is_text and one in _ALIKE else (one,) for one, is_text in zip(key, texts, strict=True)
        ]
        alike |= dict.fromkeys(product(*choices))
    return list(alike)


def has_null_partition(table: Place, columns: Collection[str]) -> bool:
    """Whether a table may have rows with NULL in one of the columns that it is partitioned by."""
    import pyarrow as pa

    files = pa.table(delta_table(table).get_add_actions(flatten=True))
    wanted = {f"partition.{name.lower()}" for name in columns}
    return any(files[name].null_count > 0 for name in files.column_names if name.lower() in wanted)
