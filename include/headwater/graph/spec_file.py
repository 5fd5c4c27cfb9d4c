"""Reading ``pipeline.yml``: values from the environment are substituted, errors name key, line and nearest name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from headwater.definitions.lakeflow_settings import LakeflowSettings, is_lakeflow
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.spec_model import WrongAt
from headwater.errors import InvalidSpec, PipelineNotFound
from headwater.graph.asset_bundle import NotOnePipeline, bundle_pipeline, is_bundle
from headwater.graph.lakeflow_spec import SettingNote, translated
from headwater.graph.platform_answer import SPEC, answer_notes, is_answer, not_settings
from headwater.graph.spec_secrets import by_variables
from headwater.graph.spec_text import parse_spec, unusable
from headwater.graph.whole_bundle import whole_bundle
from headwater.runtime.secret_values import names_a_secret
from headwater.suggestions import nearest

SPEC_FILES = (
    "pipeline.yml", "pipeline.yaml", "pipeline.json", "spark-pipeline.yml", "spark-pipeline.yaml",
)  # fmt: skip
# pydantic speaks of Python's types.
_OWN_WORDS = {
    "tuple_type": "a list is expected: [a, b], or a line with a dash for each",
    "dict_type": "a map of keys to values is expected",
    "model_type": "a map of keys to values is expected",
    "model_attributes_type": "a map of keys to values is expected",
    "string_type": "a text is expected; in quotes, where it looks like a number, a date or a truth value",
}
# So many pipelines beside a folder that is none are named.
_MOST_NEAR = 3
_TEXT_KEYS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")
_ENVIRONMENT = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::([^}]*))?\}")


def find_spec_file(folder: Path) -> Path:
    """The pipeline's spec file in ``folder``; raises PipelineNotFound where there is none, or more than one."""
    if folder.is_file():
        raise PipelineNotFound(
            f"{folder} is a file.", remedy=f"Give the folder that it lies in: {folder.parent}."
        )
    if not folder.is_dir():
        raise PipelineNotFound(
            f"There is no folder {folder}.", remedy="Give the folder that holds pipeline.yml."
        )
    files = _spec_files(folder)
    if not files:
        near = [str(place) for place in (folder.parent, *sorted(folder.glob("*/"))) if _is_pipeline(place)]
        more = f", and {len(near) - _MOST_NEAR} more" if len(near) > _MOST_NEAR else ""
        raise PipelineNotFound(
            f"{folder} holds no pipeline.yml.",
            remedy=f"A pipeline's folder is {' or '.join(near[:_MOST_NEAR])}{more}."
            if near
            else "Give the folder of a pipeline, or make one with `python -m headwater init DIR`.",
        )
    if len(files) > 1:
        names = " and ".join(path.name for path in files)
        raise PipelineNotFound(f"{folder} holds {names}.", remedy="Keep one of them.")
    return files[0]


def _spec_files(folder: Path) -> list[Path]:
    return [folder / name for name in SPEC_FILES if (folder / name).is_file()]


def _is_pipeline(folder: Path) -> bool:
    try:
        return bool(_spec_files(folder))
    except PermissionError:
        return False


def read_spec(path: Path, environment: Mapping[str, str] = os.environ) -> PipelineSpec:
    """Read and check a spec file; raises InvalidSpec with every fault, each with its line."""
    source = read_source(path)
    return checked_spec(source, _substitute(source.data, environment, path, source.node))


@dataclass(frozen=True)
class SpecSource:
    """A spec before values are filled in: as ``pipeline.yml`` has it, whatever form the file has.

    ``node``: where its keys stand. ``notes``: what became of settings of Lakeflow. ``bundled``: of a bundle, those settings as they are
    written; ``path`` is then the file of the bundle in which they stand.
    """

    path: Path
    data: dict[str, Any]
    node: yaml.Node | None
    notes: tuple[SettingNote, ...] = ()
    bundled: Mapping[str, Any] | None = None


def read_source(path: Path, pipeline: str | None = None, target: str | None = None) -> SpecSource:
    """Read a file in any of its forms; ``pipeline``: which one of a bundle, ``target``: of its targets. Raises InvalidSpec."""
    data, node = parse_spec(path)
    data = by_variables(data)
    if (other := not_settings(data)) is not None:
        raise InvalidSpec(f"{path.name} {other[0]}.", where=path, remedy=other[1])
    if not is_bundle(data):
        if (chosen := pipeline or target) is not None:
            raise InvalidSpec(
                f"{path.name} is not a bundle, so it has no {'pipeline' if pipeline else 'target'} {chosen!r}.",
                where=path,
                remedy="Leave it out.",
            )
        if is_answer(data):
            inside = _child(node, SPEC)
            return _from_lakeflow(path, data[SPEC], inside and inside[1], notes=answer_notes(data))
        lakeflow = is_lakeflow(data) or path.suffix.lower() == ".json"
        return _from_lakeflow(path, data, node) if lakeflow else SpecSource(path, data, node)
    try:
        bundle = whole_bundle(path, target)
        bundled = bundle_pipeline(by_variables(bundle.data), pipeline)
    except NotOnePipeline as error:
        raise InvalidSpec(
            f"{error}.", where=f"{path}:{_line(node, error.keys)}", remedy=error.remedy
        ) from None
    inner: yaml.Node | None
    file, inner = bundle.places.get(bundled.resource, (path, node))
    for key in bundled.keys:
        child = _child(inner, key)
        inner = child[1] if child else None
    source = _from_lakeflow(file, bundled.settings, inner, bundled.resource, bundled.notes)
    return replace(source, bundled=bundled.settings)


def _line(node: yaml.Node | None, keys: Sequence[str]) -> int:
    """The line of the last of the keys that can be seen in the file."""
    line = 1
    for key in keys:
        inside_list = isinstance(node, yaml.SequenceNode)
        child = None if inside_list and not key.isdigit() else _child(node, int(key) if inside_list else key)
        if child is None:
            break
        line, node = child
    return line


def place_of(path: Path, *keys: str) -> str:
    """Where a key stands in a spec file that :func:`read_spec` has accepted, as far as its keys can be seen there."""
    return f"{path}:{_line(read_source(path).node, keys)}"


def _from_lakeflow(
    path: Path,
    data: dict[str, Any],
    node: yaml.Node | None,
    resource: str | None = None,
    notes: tuple[SettingNote, ...] = (),
) -> SpecSource:
    try:
        settings = LakeflowSettings.model_validate(data)
    except ValidationError as error:
        raise _refused(error, node, path, LakeflowSettings) from None
    try:
        made = translated(settings, resource)
    except ValueError as error:
        raise InvalidSpec(f"{error}.", where=path, remedy=f"Correct {path.name} and run again.") from None
    return SpecSource(path, made.data, node, (*notes, *made.notes))


def checked_spec(source: SpecSource, data: dict[str, Any]) -> PipelineSpec:
    """The spec of ``data``, which is that of the source with values filled in; raises InvalidSpec with every fault and its line."""
    try:
        return PipelineSpec.model_validate(data)
    except ValidationError as error:
        raise _refused(error, source.node, source.path, PipelineSpec) from None


def check_as_written(source: SpecSource) -> None:
    """Check a spec whose values from the environment are not known here; raises InvalidSpec with every fault and its line."""
    names = {name for text in _leaves(source.data) for name, usual in _ENVIRONMENT.findall(text) if not usual}
    checked_spec(source, _substitute(source.data, dict.fromkeys(names, "x"), source.path, source.node))


def _refused(
    error: ValidationError, node: yaml.Node | None, path: Path, model: type[BaseModel]
) -> InvalidSpec:
    faults = [_fault(detail, node, path, model) for detail in error.errors(include_url=False)]
    what = "\n    ".join(dict.fromkeys(fault for fault, _ in faults))
    return InvalidSpec(what, where=faults[0][1], remedy=f"Correct {path.name} and run again.")


def read_written(path: Path) -> dict[str, Any]:
    """What a spec file says, with ``${env:...}`` still in it; of a file that :func:`read_spec` has accepted.

    Of settings of Lakeflow, what they are here: what has no effect is no part of the pipeline.
    """
    return read_source(path).data


def _substitute(
    value: Any, environment: Mapping[str, str], path: Path, node: yaml.Node | None, line: int = 1
) -> Any:
    """The value with ``${env:...}`` filled in; ``node`` and ``line``: where it stands, as far as that is known."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        filled = {}
        for key, item in items:
            below, child = _child(node, key) or (line, None)
            filled[key] = _substitute(item, environment, path, child, below)
        return filled if isinstance(value, dict) else list(filled.values())
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        value = environment.get(match[1], match[2])
        if value is None:
            raise InvalidSpec(
                f"{match[0]} names an environment variable that is not set.",
                where=f"{path}:{line}",
                remedy=f"Set {match[1]}, or give a default: ${{env:{match[1]}:value}}.",
            )
        why = unusable(value)
        if why is not None:  # the value may be a secret: only its name is shown
            raise InvalidSpec(
                f"The environment variable {match[1]} {why}.",
                where=f"{path}:{line}",
                remedy=f"Set {match[1]} to UTF-8 text.",
            )
        return value

    return _ENVIRONMENT.sub(replace, value)


def _odd_key(node: yaml.Node | None) -> yaml.ScalarNode | None:
    """The first key of a map that is no text to YAML, to which ``on`` and ``yes`` are true."""
    keys = (key for key, _ in node.value) if isinstance(node, yaml.MappingNode) else ()
    odd = (key for key in keys if isinstance(key, yaml.ScalarNode) and key.tag not in _TEXT_KEYS)
    return next(odd, None)


def _fault(detail: Any, root: yaml.Node | None, path: Path, model: type[BaseModel]) -> tuple[str, str]:
    of_parts = (detail.get("ctx") or {}).get("error")
    keys, node, line = _place_of(
        detail, of_parts.keys if isinstance(of_parts, WrongAt) else detail["loc"], root
    )
    where = f"{path}:{line}"
    dotted = ".".join(str(key) for key in keys)
    if detail["type"] == "extra_forbidden":
        near = nearest(str(keys[-1]), _known_keys(keys[:-1], model))
        hint = f" Did you mean `{near}`?" if near else ""
        return f"Unknown key `{dotted}`.{hint}", where
    if detail["type"] == "missing":
        return f"The key `{dotted}` is missing.", where
    odd = _odd_key(node) if detail["type"] == "invalid_key" or detail["loc"][-1:] == ("[key]",) else None
    if odd is not None:
        return (
            f"The key `{odd.value}` is no text to YAML: put it in quotes.",
            f"{path}:{odd.start_mark.line + 1}",
        )
    message = _OWN_WORDS.get(detail["type"], detail["msg"].removeprefix("Value error, "))
    if isinstance(of_parts, WrongAt):  # it quotes names alone
        return f"{message}.", where
    return _sentence(message, detail.get("input"), keys, node), where


def _place_of(
    detail: Any, path_in_file: Sequence[Any], root: yaml.Node | None
) -> tuple[list[Any], yaml.Node | None, int]:
    """The keys that lead to a fault, its node and its line, as far as they can be seen in the file."""
    # pydantic puts the names of union members in the location; only real keys lead anywhere in the file.
    keys: list[Any] = []
    node, line = root, 1
    for depth, key in enumerate(path_in_file):
        child = _child(node, key)
        if child is None and depth < len(path_in_file) - 1:
            continue
        if child is None and detail["type"] not in ("extra_forbidden", "missing"):
            continue
        keys.append(key)
        if child is not None:
            line, node = child
    return keys, node, line


def _sentence(message: str, given: object, keys: Sequence[Any], node: yaml.Node | None) -> str:
    """What is wrong with a value, without what may be a secret."""
    if any(map(_ENVIRONMENT.search, _scalars(node))):
        # What an environment variable holds may be a secret: the value is shown as it is written.
        written = str(node.value) if isinstance(node, yaml.ScalarNode) else "..."
        message, given = _without(message, given, written), written
    if keys and names_a_secret(str(keys[-1])) and not str(keys[-1]).endswith("_env"):
        message, given = _without(message, given, "..."), None
    shown = f" (got {_shortened(given)})" if isinstance(given, str | int | float | bool | list) else ""
    dotted = ".".join(str(key) for key in keys)
    if names_a_secret(
        dotted
    ):  # with a colon behind the name, what follows would be taken for a secret where it is shown
        return f"In `{dotted}`, {message}{shown}."
    return f"`{dotted}`: {message}{shown}." if dotted else f"{message}."


def _scalars(node: yaml.Node | None) -> Iterator[str]:
    if isinstance(node, yaml.ScalarNode):
        yield str(node.value)
    elif isinstance(node, yaml.CollectionNode):
        for item in node.value:
            for below in item if isinstance(item, tuple) else (item,):
                yield from _scalars(below)


def _without(message: str, given: object, written: str) -> str:
    """A message without a value that it quotes, in whatever letter case."""
    for value in sorted(_leaves(given), key=len, reverse=True):
        message = re.sub(re.escape(value), lambda _: written, message, flags=re.IGNORECASE)
    return message


def _leaves(value: object) -> set[str]:
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return {leaf for item in items for leaf in _leaves(item)}
    return {text for text in (value, value.strip()) if text} if isinstance(value, str) else set()


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _child(node: yaml.Node | None, key: object) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == str(key):
                return name.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        item = node.value[key]
        return item.start_mark.line + 1, item
    return None


def _known_keys(parents: list[Any], root: type[BaseModel]) -> list[str]:
    model: type[BaseModel] | None = root
    named_by_user = False
    for parent in parents:
        if isinstance(parent, int) or model is None or named_by_user:
            named_by_user = False
            continue
        field = next((f for n, f in model.model_fields.items() if parent in (n, f.alias)), None)
        model = _model_in(field.annotation) if field is not None else None
        named_by_user = field is not None and get_origin(field.annotation) is dict
    if model is None:
        return []
    names = [field.alias or name for name, field in model.model_fields.items()]
    return [*names, "database", "target"] if model is PipelineSpec else names


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for arg in getattr(annotation, "__args__", ()) if (model := _model_in(arg))), None)
