"""The pipeline of an asset bundle: ``resources: {pipelines: {key: ...}}``, with the bundle's variables filled in.

Decision 0161.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.graph.bundle_schedule import TIMES, job_times, jobs_of, scheduled
from headwater.graph.lakeflow_spec import SettingNote
from headwater.suggestions import did_you_mean, nearest

# Without braces inside: of `${var.${bundle.target}_schema}` the inner one is filled in first.
_REFERENCE = re.compile(r"\$\{(var|bundle|workspace|resources|artifacts)\.([^${}]*)\}")
_IDLE = {
    "bundle": "the folder is the pipeline",
    "include": "the files that it names are read as parts of this one",
    "targets": "the variables of one target are filled in; nothing is deployed; what differs from machine to machine belongs in ${env:NAME}",
    "variables": "their defaults are filled in where the pipeline names them; one without is asked of the environment, as BUNDLE_VAR_<name>",
    "workspace": "nothing is deployed",
    "permissions": "access is Airflow's matter",
    "artifacts": "modules beside the sources are imported as they lie",
    "sync": "nothing is deployed",
    "run_as": "the pipeline runs as the user of the worker",
    "experimental": "nothing is deployed",
    "presets": "nothing is deployed",
    "scripts": "nothing is deployed",
    "python": "resources that Python code declares are not read",
}


# What `databricks bundle summary` adds to a resource: where it was deployed.
_DEPLOYED = ("url", "modified_status")
# The key of `bundle` under which its own folder is noted.
FOLDER = "__folder"
# What a deployment would know: who deploys, and where the files of the bundle lie.
_USER = ("current_user.userName", "current_user.short_name", "current_user.domain_friendly_name")
_FILES = ("file_path", "root_path")
# `environment` is what targets were called.
_OF_BUNDLE = {"name": "name", "target": "target", "environment": "target"}


@dataclass(frozen=True)
class BundlePipeline:
    """One pipeline of a bundle. ``keys``: where it stands in the file."""

    resource: str
    settings: dict[str, Any]
    keys: tuple[str, ...]
    notes: tuple[SettingNote, ...]


class NotOnePipeline(ValueError):
    """The bundle can't be read as one pipeline. ``keys``: where the fault stands; ``remedy``: what to do."""

    def __init__(self, what: str, keys: tuple[str, ...] = (), remedy: str = "") -> None:
        super().__init__(what)
        self.keys = keys
        self.remedy = remedy


def is_bundle(data: Mapping[str, Any]) -> bool:
    """Whether a file is (a part of) an asset bundle."""
    return "resources" in data or "bundle" in data


def bundle_pipeline(data: Mapping[str, Any], chosen: str | None = None) -> BundlePipeline:
    """The one pipeline of a bundle, or the ``chosen`` one.

    Raises:
        NotOnePipeline: there is none, or several; a key is unknown; a variable has no value.
    """
    for key in data:
        if key not in _IDLE and key != "resources":
            near = nearest(str(key), (*_IDLE, "resources"))
            raise NotOnePipeline(
                f"Unknown key `{key}` of a bundle", (key,), did_you_mean(near, "Take it out.")
            )
    name, settings = _named(data.get("resources"), chosen)
    keys = ("resources", "pipelines", name)
    if not isinstance(settings, Mapping):
        raise NotOnePipeline(f"`{'.'.join(keys)}` must be a mapping of keys to values", keys)
    notes = [SettingNote(key, _IDLE[key]) for key in data if key in _IDLE]
    own = {key: value for key, value in settings.items() if key not in _DEPLOYED}
    own, of_jobs = _with_schedule(_filled(own, data, keys), name, data)
    others = [kind for kind in data["resources"] if kind != "pipelines"]
    if len(of_jobs) == len(_mapping(data["resources"].get("jobs"))) > 0:
        others.remove("jobs")
    notes += of_jobs
    notes += [
        SettingNote(f"resources.{kind}", "the folder is one pipeline; Airflow schedules it")
        for kind in others
    ]
    notes += [
        SettingNote(f"resources.pipelines.{other}", "the folder is one pipeline")
        for other in data["resources"]["pipelines"]
        if str(other) != name
    ]
    notes += [
        SettingNote(key, "it tells where the bundle was deployed") for key in _DEPLOYED if key in settings
    ]
    return BundlePipeline(name, own, keys, tuple(notes))


def _with_schedule(
    settings: dict[str, Any], name: str, data: Mapping[str, Any]
) -> tuple[dict[str, Any], list[SettingNote]]:
    """Settings with the schedule of the jobs that start the pipeline, and what became of those."""
    jobs = _mapping(data["resources"].get("jobs"))
    times = []
    for job in jobs_of(name, jobs):
        said = {kind: jobs[job][kind] for kind in TIMES if kind in jobs[job]}
        times.append(job_times(job, _filled(said, data, ("resources", "jobs", job))))
    return scheduled(settings, times)


def _named(resources: Any, chosen: str | None) -> tuple[str, Any]:
    """Key and settings of the one pipeline, or of the ``chosen`` one."""
    pipelines = resources.get("pipelines") if isinstance(resources, Mapping) else None
    if not isinstance(pipelines, Mapping) or not pipelines:
        raise NotOnePipeline(
            "`resources` has no `pipelines`",
            ("resources",),
            "Give the file of the bundle that declares the pipeline.",
        )
    if chosen is None and len(pipelines) > 1:
        raise NotOnePipeline(
            f"`resources.pipelines` has {len(pipelines)} pipelines, and a folder is one",
            ("resources", "pipelines"),
            f"Make a folder of each: `headwater convert FILE --pipeline KEY -o DIR`, with {', '.join(map(str, pipelines))}.",
        )
    name = next(iter(pipelines)) if chosen is None else chosen
    if name not in pipelines:
        near = nearest(name, map(str, pipelines))
        raise NotOnePipeline(
            f"The bundle has no pipeline {name!r}",
            ("resources", "pipelines"),
            did_you_mean(near, f"It has: {', '.join(map(str, pipelines))}."),
        )
    return str(name), pipelines[name]


def _filled(value: Any, data: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return {key: _filled(item, data, (*keys, str(key))) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, data, (*keys, str(number))) for number, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    whole = _REFERENCE.fullmatch(value)
    if whole is not None:
        return _looked_up(whole, data, keys)
    filled = _REFERENCE.sub(lambda match: _text(_looked_up(match, data, keys), match, keys), value)
    return filled if filled == value else _filled(filled, data, keys)


def _text(value: Any, match: re.Match[str], keys: tuple[str, ...]) -> str:
    """A value as a part of a text."""
    if isinstance(value, Mapping | list):
        raise NotOnePipeline(
            f"`{'.'.join(keys)}`: {match[0]} is a {'list' if isinstance(value, list) else 'map'}, and stands inside a text",
            keys,
            "Let it be the whole value.",
        )
    return str(value)


def _looked_up(match: re.Match[str], data: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    kind, name = match[1], match[2]
    value = None
    if kind == "var":
        value = _variable(data, name)
    elif kind == "bundle" and name in _OF_BUNDLE:
        value = _mapping(data.get("bundle")).get(_OF_BUNDLE[name])
    elif kind == "workspace" and name in _USER:
        value = "${env:USER}"
    elif kind == "workspace" and name in _FILES:
        value = _mapping(data.get("bundle")).get(FOLDER)
    elif kind == "workspace" and name == "host":
        value = _mapping(data.get("workspace")).get("host", "${env:DATABRICKS_HOST}")
    elif kind == "resources":
        value = _of_resource(data, name)
    if value is None:
        raise NotOnePipeline(
            f"`{'.'.join(keys)}`: {match[0]} has no value in this file", keys,
            f"Give the variable a `default` in `variables`, or write the value out: ${{env:{re.sub(r'[^A-Za-z0-9]+', '_', name).upper()}}} takes it from the environment.",
        )  # fmt: skip
    # What a reference stands for may name others; the key that names it is no longer among them.
    if kind == "var":
        return _filled(value, {**data, "variables": _without(data.get("variables"), name)}, keys)
    if kind == "resources":
        return _filled(
            value, {**data, "resources": _without(data.get("resources"), name.split(".")[0])}, keys
        )
    return _filled(value, {**data, kind: {}}, keys)


def _variable(data: Mapping[str, Any], name: str) -> Any:
    """The value of a variable; where it is declared without one, the deployment's variable of the environment."""
    variables = _mapping(data.get("variables"))
    if name not in variables:
        return None
    declared = variables[name]
    value = declared.get("default") if isinstance(declared, Mapping) else declared
    return f"${{env:BUNDLE_VAR_{name}}}" if value is None else value


def _of_resource(data: Mapping[str, Any], name: str) -> Any:
    """A field of another resource of the bundle, as it is written there: what only a deployment knows (``id``) has no value."""
    kind, _, rest = name.partition(".")
    key, _, field = rest.partition(".")
    resource = _mapping(_mapping(_mapping(data.get("resources")).get(kind)).get(key))
    if kind == "volumes" and field == "volume_path":
        parts = [resource.get(part) for part in ("catalog_name", "schema_name", "name")]
        return None if None in parts else "/".join(["/Volumes", *map(str, parts)])
    value = resource.get(field)
    return value if isinstance(value, str | int | float | bool) else None


def _without(values: Any, name: str) -> dict[str, Any]:
    return {key: value for key, value in _mapping(values).items() if key != name}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
