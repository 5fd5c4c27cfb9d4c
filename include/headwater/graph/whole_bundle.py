"""An asset bundle with the files that it includes and the values of one of its targets.

Decision 0161.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from headwater.graph.asset_bundle import FOLDER, NotOnePipeline
from headwater.graph.spec_text import parse_spec
from headwater.suggestions import did_you_mean, nearest

_OF_VARIABLE = {"default", "description", "type", "lookup"}
# Keys by which an entry of a list is known to be a cluster.
_OF_CLUSTER = {"label", "autoscale", "num_workers", "node_type_id", "spark_conf", "policy_id"}


@dataclass(frozen=True)
class WholeBundle:
    """``data``: as one file would have it. ``places``: the file and the nodes in which each pipeline stands."""

    data: dict[str, Any]
    places: Mapping[str, tuple[Path, yaml.Node]] = field(default_factory=dict)


def whole_bundle(path: Path, target: str | None = None) -> WholeBundle:
    """Read a bundle's file and those that it includes.

    Args:
        path: of ``databricks.yml``, or of a file that declares resources.
        target: whose variables count; None for the default one.

    Raises:
        InvalidSpec: a file can't be read.
        NotOnePipeline: an included file lies elsewhere, or there is no such target.
    """
    data, node = parse_spec(path)
    places = dict.fromkeys(_pipelines(data), (path, node))
    for file in _included(path, data):
        if _says_nothing(file):
            continue
        more, its_node = parse_spec(file)
        places |= dict.fromkeys(_pipelines(more), (file, its_node))
        for key in ("resources", "variables", "targets"):
            if key in more:
                data[key] = _together(data.get(key), more[key])
    data = _with_target(data, target)
    bundle = data.get("bundle")
    described = {**(bundle if isinstance(bundle, Mapping) else {}), FOLDER: str(path.parent.absolute())}
    return WholeBundle({**data, "bundle": described}, places)


def _included(path: Path, data: Mapping[str, Any]) -> list[Path]:
    patterns = data.get("include") or []
    files: list[Path] = []
    for pattern in patterns if isinstance(patterns, list) else [patterns]:
        if not isinstance(pattern, str) or Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            raise NotOnePipeline(
                f"`include` names {pattern!r}", ("include",), "Name files below the bundle's own folder."
            )
        matching = sorted(file for file in path.parent.glob(pattern) if file.is_file())
        files += [file for file in matching if file not in files and file != path]
    return files


def _says_nothing(file: Path) -> bool:
    """Whether a file has comments alone, as a resource that is taken out for a while."""
    lines = (line.strip() for line in file.read_text(encoding="utf-8", errors="replace").split("\n"))
    return all(not line or line.startswith("#") or line == "---" for line in lines)


def _with_target(data: dict[str, Any], chosen: str | None) -> dict[str, Any]:
    targets = data.get("targets")
    targets = targets if isinstance(targets, Mapping) else {}
    if chosen is not None and chosen not in targets:
        near = did_you_mean(
            nearest(chosen, map(str, targets)), f"It has: {', '.join(map(str, targets)) or 'none'}."
        )
        raise NotOnePipeline(f"The bundle has no target {chosen!r}", ("targets",), near)
    usual = [name for name, one in targets.items() if isinstance(one, Mapping) and one.get("default") is True]
    name = chosen or next(iter([*usual, *targets]), None)
    if name is None:
        return data
    values = targets[name] if isinstance(targets[name], Mapping) else {}
    for key in ("resources", "workspace"):
        if key in values:
            data[key] = _together(data.get(key), values[key])
    if isinstance(values.get("variables"), Mapping):
        data["variables"] = _with_values(data.get("variables"), values["variables"])
    bundle = data.get("bundle")
    return {**data, "bundle": {**(bundle if isinstance(bundle, Mapping) else {}), "target": str(name)}}


def _pipelines(data: Mapping[str, Any]) -> list[str]:
    resources = data.get("resources")
    pipelines = resources.get("pipelines") if isinstance(resources, Mapping) else None
    return list(map(str, pipelines)) if isinstance(pipelines, Mapping) else []


def _with_values(declared: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Variables with a target's values, which take the place of the defaults, whole also where they are maps."""
    variables = dict(declared) if isinstance(declared, Mapping) else {}
    for name, value in given.items():
        known = variables.get(name)
        keys = value.keys() if isinstance(value, Mapping) else set()
        described = keys <= _OF_VARIABLE and bool(keys & {"default", "lookup"})
        variables[name] = {
            **(known if isinstance(known, Mapping) else {}),
            **(value if described else {"default": value}),
        }
    return variables


def _together(one: Any, other: Any) -> Any:
    """Two values as one: lists are put together, and where two maps have a key, the second counts."""
    if isinstance(one, list) and isinstance(other, list):
        return _one_of_each([*one, *other])
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return other
    return {
        **one,
        **{key: _together(one[key], value) if key in one else value for key, value in other.items()},
    }


def _one_of_each(entries: list[Any]) -> list[Any]:
    """A list in which clusters of one label are one."""
    if not all(isinstance(entry, Mapping) and entry.keys() & _OF_CLUSTER for entry in entries):
        return entries
    labels: dict[str, Any] = {}
    for entry in entries:
        label = str(entry.get("label", "default"))
        labels[label] = _together(labels[label], entry) if label in labels else entry
    return list(labels.values())
