"""The page and the dashboard name the metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

from headwater.telemetry.families import FAMILIES
from headwater.telemetry.instruments import INSTRUMENTS

DOCS = Path(__file__).parents[4] / "docs"


def test_the_page_has_every_metric():
    """Each instrument's row has its attributes; each family stands there with its labels, or as an ending of a row."""
    page = (DOCS / "observability.md").read_text()
    for instrument in INSTRUMENTS:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{instrument.name}` |")]
        assert str(instrument.kind) in row
        assert re.findall(r"`(\w+)`", row.split("|")[3]) == list(instrument.attributes)
    rows = {
        line.split("|")[1]: line.split("|")[2]
        for line in page.splitlines()
        if line.startswith("| `headwater_")
    }
    named = {}
    for names, labels in rows.items():
        first, *more = re.findall(r"`(\w+)`", names)
        stem = first.rsplit("_", 1)[0]
        for name in (first, *(one if one.startswith("headwater") else stem + one for one in more)):
            named[name] = ("pipeline", *re.findall(r"`(\w+)`", labels))
    assert named == {name: labels for name, (_, labels) in FAMILIES.items()}


def test_the_dashboard_asks_for_what_is_exported():
    """Every metric in a query is a family, and every label in it is one of that family."""
    dashboard = json.loads((DOCS / "observability" / "grafana.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked = [match for query in queries for match in re.findall(r"(headwater_\w+)\{([^}]*)\}", query)]
    assert len(asked) >= len(queries)
    for name, selector in asked:
        assert set(re.findall(r"(\w+)=", selector)) <= set(FAMILIES[name][1]), name
    legends = {
        label
        for p in dashboard["panels"]
        for t in p["targets"]
        for label in re.findall(r"{{(\w+)}}", t["legendFormat"])
    }
    assert legends <= {label for _, labels in FAMILIES.values() for label in labels}
