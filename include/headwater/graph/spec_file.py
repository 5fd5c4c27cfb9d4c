"""Reading ``pipeline.yml``: values from the environment put in, errors told with key, line and nearest name."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.errors import InvalidSpec, PipelineNotFound

SPEC_FILES = ("pipeline.yml", "pipeline.yaml", "spark-pipeline.yml", "spark-pipeline.yaml")
_ENVIRONMENT = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::([^}]*))?\}")


def find_spec_file(folder: Path) -> Path:
    """The pipeline's spec file in ``folder``; raises PipelineNotFound where there is none, or more than one."""
    if not folder.is_dir():
        raise PipelineNotFound(
            f"There is no folder {folder}.", remedy="Give the folder that holds pipeline.yml."
        )
    found = [folder / name for name in SPEC_FILES if (folder / name).is_file()]
    if not found:
        raise PipelineNotFound(
            f"{folder} holds no pipeline.yml.",
            remedy="Give the folder of a pipeline, or make one with `python -m headwater init DIR`.",
        )
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise PipelineNotFound(f"{folder} holds {names}.", remedy="Keep one of them.")
    return found[0]


def read_spec(path: Path, environment: Mapping[str, str] = os.environ) -> PipelineSpec:
    """Read and check a spec file; raises InvalidSpec with every fault, each with its line."""
    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else path
        raise InvalidSpec(
            f"{path.name} is not YAML: {getattr(error, 'problem', error)}.", where=where
        ) from None
    if not isinstance(data, dict):
        raise InvalidSpec(
            f"{path.name} must be a mapping of keys to values.", where=path, remedy="Begin with `name: ...`."
        )
    data = _substitute(data, environment, path)
    try:
        return PipelineSpec.model_validate(data)
    except ValidationError as error:
        faults = [_fault(detail, node, path) for detail in error.errors(include_url=False)]
        what = "\n    ".join(dict.fromkeys(fault for fault, _ in faults))
        raise InvalidSpec(what, where=faults[0][1], remedy=f"Correct {path.name} and run again.") from None


def read_written(path: Path) -> dict[str, Any]:
    """What a spec file says, with ``${env:...}`` still in it; of a file that :func:`read_spec` has accepted."""
    data: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return data


def _substitute(value: Any, environment: Mapping[str, str], path: Path) -> Any:
    if isinstance(value, dict):
        return {key: _substitute(item, environment, path) for key, item in value.items()}
    if isinstance(value, list):
        return [_substitute(item, environment, path) for item in value]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        found = environment.get(match[1], match[2])
        if found is None:
            raise InvalidSpec(
                f"{match[0]} names an environment variable that is not set.",
                where=path,
                remedy=f"Set {match[1]}, or give a default: ${{env:{match[1]}:value}}.",
            )
        return found

    return _ENVIRONMENT.sub(replace, value)


def _fault(detail: Any, root: yaml.Node | None, path: Path) -> tuple[str, str]:
    # pydantic puts the names of union members in the location; only real keys lead anywhere in the file.
    keys: list[Any] = []
    node, line = root, 1
    path_in_file = detail["loc"]
    for depth, key in enumerate(path_in_file):
        child = _child(node, key)
        if child is None and depth < len(path_in_file) - 1:
            continue
        if child is None and detail["type"] not in ("extra_forbidden", "missing"):
            continue
        keys.append(key)
        if child is not None:
            line, node = child
    where = f"{path}:{line}"
    dotted = ".".join(str(key) for key in keys)
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(keys[-1]), _known_keys(keys[:-1]), n=1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        return f"Unknown key `{dotted}`.{hint}", where
    if detail["type"] == "missing":
        return f"The key `{dotted}` is missing.", where
    given = detail.get("input")
    shown = f" (got {given!r})" if isinstance(given, str | int | float | bool | list) else ""
    message = detail["msg"].removeprefix("Value error, ")
    return (f"`{dotted}`: {message}{shown}." if dotted else f"{message}."), where


def _child(node: yaml.Node | None, key: object) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == str(key):
                return name.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        item = node.value[key]
        return item.start_mark.line + 1, item
    return None


def _known_keys(parents: list[Any]) -> list[str]:
    model: type[BaseModel] | None = PipelineSpec
    for parent in parents:
        if isinstance(parent, int) or model is None:
            continue
        field = next((f for n, f in model.model_fields.items() if parent in (n, f.alias)), None)
        model = _model_in(field.annotation) if field is not None else None
    if model is None:
        return []
    names = [field.alias or name for name, field in model.model_fields.items()]
    return [*names, "database", "target"] if model is PipelineSpec else names


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in getattr(annotation, "__args__", ()) if (found := _model_in(arg))), None)
