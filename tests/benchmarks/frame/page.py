"""Render docs/benchmarks.md and its plots from the files of results: python -m tests.benchmarks.frame.page."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.frame.bench import RESULTS
from tests.benchmarks.frame.picture import bars, dots
from tests.benchmarks.frame.rows import ROWS, Row

DOCS = Path(__file__).parents[3] / "docs"
_HEAD = """\
# Benchmarks

`make bench` measures all rows in about an hour on 2 cores, with smaller sizes and without the largest parts (twenty views in one
update, 50 flows); `make bench ONLY=small` one row with all its parts, most in under ten minutes, views and graph in longer.
Rendered from `tests/benchmarks/results/` by `python -m tests.benchmarks.frame.page`, which `make bench` runs at its end.

- **Ratios, no absolute times.** The contenders run in turns, in one benchmark run on one machine, each round in another order.
  A ratio is that of the medians; beside it stand the least and the greatest ratio of a single round. Compare ratios between
  machines, not seconds.
- **Right before fast.** Each run checks the rows that both sides have written before its time counts.
- **Two measures.** Wall time, and the CPU time (user and system) of all processes of a contender: it says what the work costs
  on a machine that is busy with other things, where wall time says little. Targets are judged by wall time.
- **The physical limit** stands beside, where there is one: the bytes read by a plain copy, or the start and end of a Spark session.
- **Peers** are in `tests/benchmarks/peers/`: short, as one writes them, with the same Spark settings unless the row says otherwise.
- What was not measured says so. What misses its target stays in the table, with the cause where it is known.
"""


def render(results: Path, docs: Path) -> dict[Path, str]:
    """The page and its plots, by file."""
    found = {file.stem: json.loads(file.read_text()) for file in sorted(results.glob("*.json"))}
    unknown = set(found) - {row.name for row in ROWS}
    assert not unknown, f"no row for the results {sorted(unknown)}: add it to tests/benchmarks/frame/rows.py"
    files: dict[Path, str] = {}
    sections = []
    for row in ROWS:
        if row.name in found:
            pictures = _pictures(found[row.name])
            files |= {docs / "images" / "benchmarks" / name: text for name, text in pictures.items()}
            sections.append(_section(row, found[row.name], list(pictures)))
    files[docs / "benchmarks.md"] = "\n".join([_HEAD, _overview(found), *sections])
    return files


def _overview(found: Mapping[str, Any]) -> str:
    lines = ["## Overview", "", "| Row | Work | Peers | Target | Result |", "|---|---|---|---|---|"]
    for row in ROWS:
        name = f"[{row.name}](#{row.name})" if row.name in found else row.name
        lines.append(
            f"| {name} | {row.work} | {row.peers} | {row.target} | {_verdict(found.get(row.name))} |"
        )
    return "\n".join(lines) + "\n"


def _verdict(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return "not measured"
    judged = [entry["met"] for entry in result["comparisons"] if entry["met"] is not None]
    if not judged:
        return "reported"
    return "met" if all(judged) else f"{sum(judged)} of {len(judged)} met"


def _section(row: Row, result: Mapping[str, Any], pictures: list[str]) -> str:
    lines = [f"## {row.name}", "", f"{row.work[0].upper()}{row.work[1:]}. Target: {row.target}.", ""]
    if result["comparisons"]:
        lines += [
            "| Part | Ours | Peer | Ratio | One round | By CPU time | Rounds | Target | |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        lines += [_comparison(entry) for entry in result["comparisons"]]
        lines.append("")
    for name, figure in result["reported"].items():
        lines += [f"- {name}: {_figure(figure)}"]
    if result["reported"]:
        lines.append("")
    if row.note:
        lines += [row.note, ""]
    lines += [f"![{row.name}](images/benchmarks/{name})\n" for name in pictures]
    lines += [_circumstances(result), ""]
    return "\n".join(lines)  # fmt: skip


def _comparison(entry: Mapping[str, Any]) -> str:
    low, high = entry["spread"]
    verdict = {True: "met", False: "**missed**", None: ""}[entry["met"]]
    return (
        f"| {entry['part']} | {entry['ours']} | {entry['peer']} | {entry['ratio']:.2f} | {low:.2f} to {high:.2f} "
        f"| {entry['cpu_ratio']:.2f} | {entry['rounds']} | {entry['target'] or ''} | {verdict} |"
    )


def _figure(figure: Any) -> str:
    if isinstance(figure, dict):
        return ", ".join(f"{name} {_figure(value)}" for name, value in figure.items())
    if isinstance(figure, list):
        return ", ".join(map(_figure, figure))
    return f"{figure:g}" if isinstance(figure, float) else str(figure)


def _circumstances(result: Mapping[str, Any]) -> str:
    around, load = result["surroundings"], result["load"]
    sizes = ", ".join(f"{name} {value:,}" for name, value in result["sizes"].items())
    versions = ", ".join(f"{name} {value}" for name, value in around["versions"].items())
    busy = f" ({load['note']})" if load["note"] else ""
    return (
        f"Measured {result['measured']}{_duration(result)} at {around['headwater']}: {around['cores']} cores ({around['processor']}), "
        f"{around['memory_gb']} GB, {around['system']}, Python {around['python']}, Java {around['java']}, {versions}; "
        f"load {load['before']} before and {load['after']} after{busy}; seed {result['seed']}"
        + (f"; sizes: {sizes}" if sizes else "")
        + ". Raw runs are in the file of results."
    )


def _duration(result: Mapping[str, Any]) -> str:
    """How long the row took, of which the hour of all rows is made; files of results of before do not have it."""
    return f" in {result['seconds'] / 60:.1f} minutes" if "seconds" in result else ""


def _pictures(result: Mapping[str, Any]) -> dict[str, str]:
    """The plots of a result: the runs, and the parts of a time where they were measured."""
    parts = {
        part: {name: [run[0] for run in runs] for name, runs in contenders.items() if runs}
        for part, contenders in result["runs"].items()
    }
    drawn = {f"{result['name']}.svg": dots(parts)} if parts else {}
    if phases := result.get("phases"):
        drawn[f"{result['name']}-phases.svg"] = bars(_medians(phases))
    return drawn


def _medians(phases: Mapping[str, list[Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    return {
        label: {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        for label, runs in phases.items()
    }


if __name__ == "__main__":
    (DOCS / "images" / "benchmarks").mkdir(parents=True, exist_ok=True)
    for file, text in render(RESULTS, DOCS).items():
        file.write_text(text)
