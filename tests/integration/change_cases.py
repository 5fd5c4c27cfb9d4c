"""Short sequences of change events of one key, and what each comes to: every case is a key of its own in a shared table.

A case is written as batches (``|``) of events: ``a@1`` is an upsert of the name ``a`` at 1, ``a:x@1`` one of the city ``x``
too, ``-`` is NULL, and ``D@2`` a delete at 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Rows are written as the names that are there.
LATEST = {
    "a@1,b@3 | c@2 | d@4,D@2": "d",
    "a@1,b@3 | d@4 | D@5": "",
    "d@4 | D@5 | ghost@4": "",
    "D@2,b@3": "b",
    "D@1": "",
    "D@1 | a@2": "a",
    "a@1,b@3 | a@1,b@3": "b",
    # Two events of one sequence: a delete wins, then the greater row, in whatever order.
    "a@9,b@9": "b",
    "b@9 | a@9": "b",
    "a@9 | b@9": "b",
    "a@9,D@9": "",
    "a@9 | D@9": "",
    "D@9 | a@9": "",
    # A delete that comes again never removes a newer row.
    "a@1 | D@2,b@3 | D@2": "b",
    "a@1,D@2 | b@3 | D@2": "b",
}
# Rows are written as name[start,end).
HISTORY = {
    "a@10,b@20": "a[10,20) b[20,)",
    "a@10,D@20": "a[10,20)",
    "a@10,b@20,D@30,c@40": "a[10,20) b[20,30) c[40,)",
    "a@10 | b@5": "b[5,10) a[10,)",
    "a@10,c@20 | b@15": "a[10,15) b[15,20) c[20,)",
    "a@10,b@30 | D@20": "a[10,20) b[30,)",
    "a@10,D@20 | D@15": "a[10,15)",
    "a@10,D@20 | D@15 | b@17": "a[10,15) b[17,20)",
    "D@20 | x@10": "x[10,20)",
    "D@20 | x@30": "x[30,)",
    "a@10,a@20": "a[10,)",
    "Alice@5,Alice@10,Alice@15 | Charlie@20 | Bob@12": "Alice[5,12) Bob[12,15) Alice[15,20) Charlie[20,)",
    "a@10,a@10": "a[10,)",
    "a@10,b@10": "b[10,)",
    "b@10 | a@10": "b[10,)",
    "a@10 | b@10": "b[10,)",
    "a@10,D@10": "",
    "D@10 | a@10": "",
    "a@10 | D@10": "",
    "a@10,D@20 | b@20": "a[10,20)",
    "a@10 | b@20 | a@10,b@20": "a[10,20) b[20,)",
    "a@1,b@5,c@10,d@20 | x@7,y@15": "a[1,5) b[5,7) x[7,10) c[10,15) y[15,20) d[20,)",
}
# Only the name is tracked: a change of the city stays in its row.
MOVES = {
    "alice:100@10,alice:200@20": "alice:200[10,)",
    "alice:39@39,alice:41@41,bob:42@42,carol:43@43": "alice:41[39,42) bob:42[42,43) carol:43[43,)",
}
# A NULL takes the value before it, which a late event may rewrite, and not over a delete.
PATCHES = {
    "a:x@10,-:y@20 | b@15": "a:x[10,15) b:x[15,20) b:y[20,)",
    "a:x@10,D@20,-:y@30": "a:x[10,20) -:y[30,)",
    "a:x@10,-@20": "a:x[10,)",
}


def case_events(cases: Iterable[str], step: int) -> list[tuple[Any, ...]]:
    """What the cases send in one of their batches, as (key, at, op, name, city)."""
    events = []
    for key, case in enumerate(cases):
        batches = case.split(" | ")
        for text in batches[step].split(",") if step < len(batches) else ():
            value, _, at = text.partition("@")
            name, _, city = value.partition(":")
            if name == "D":
                events.append((key, int(at), "D", None, None))
            else:
                events.append((key, int(at), "U", None if name == "-" else name, city or None))
    return events


def case_results(cases: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The rows that a table has of the cases' keys, in the form of the cases. ``rows``: ordered by key and start."""
    texts: list[list[str]] = [[] for _ in cases]
    for row in rows:
        if row["key"] < len(texts):
            text = (row["name"] or "-") + (f":{row['city']}" if row["city"] else "")
            if "__START_AT" in row:
                end = row["__END_AT"]
                assert end is None or row["__START_AT"] < end, row
                text += f"[{row['__START_AT']},{'' if end is None else end})"
            texts[row["key"]].append(text)
    return {case: " ".join(parts) for case, parts in zip(cases, texts, strict=True)}
