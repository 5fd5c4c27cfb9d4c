"""The text of a spec file as plain values, read strictly: whatever is wrong with it is an InvalidSpec with its line.

YAML takes more than a spec may hold: a key twice (the last one wins), anchors that hold themselves, dates that are none,
numbers that Python refuses to print.
"""

from __future__ import annotations

import copy
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from headwater.errors import InvalidSpec
from headwater.graph.json_text import looks_like_json, plain_json, read_json
from headwater.graph.platform_answer import not_settings
from headwater.graph.written_values import OtherValue, keep_written
from headwater.storage.place import Place

# A spec is a page of text; these keep a file made by mistake (or malice) from holding up the page of all pipelines.
_MOST_BYTES = 1 << 20
_MOST_VALUES = 50_000
_DEEPEST = 50
_LONGEST_INTEGER = 100  # signs; Python refuses to print integers of more than 4,300


class _Constructor(yaml.SafeLoader):
    """PyYAML's safe constructors, which report errors with their line. The nodes come from elsewhere."""

    def __init__(self, path: Path) -> None:
        super().__init__("")
        self.path = path

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (yaml.YAMLError, InvalidSpec, RecursionError):
            raise
        except Exception as error:
            raise _wrong_value(node, f"is no {_kind(node)} ({_first_line(error)})", self.path) from None


def parse_spec(path: Path) -> tuple[dict[str, Any], yaml.Node]:
    """The values of a spec file, and the nodes with their lines.

    Raises:
        InvalidSpec: the file can't be read, is not YAML, holds no mapping, gives a key twice, or has a value that no
            setting can have.
    """
    data, node = _parsed(path, _text(path))
    return copy.deepcopy(data), node


# Whoever opens a pipeline needs the values several times in a row. The parser in C would be faster, but has no limit of depth.
@lru_cache(maxsize=256)
def _parsed(path: Path, text: str) -> tuple[dict[str, Any], yaml.Node]:
    if path.suffix.lower() == ".json" or looks_like_json(text):
        text = plain_json(text)
        _check_json(text, path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is not None:
            _Walk(path).check(node)
        data = _constructed(path, node) if node is not None else None
    except RecursionError:
        raise _too_deep(path) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise InvalidSpec(
            f"{path.name} is not YAML: {problem}.",
            where=f"{path}:{mark.line + 1}" if mark else path,
            remedy=f"Correct {path.name}; texts with special characters go in quotes.",
        ) from None
    if not isinstance(data, dict) or node is None:
        what, remedy = not_settings(data) or (
            "must be a mapping of keys to values",
            "Begin with `name: ...`.",
        )
        raise InvalidSpec(f"{path.name} {what}.", where=path, remedy=remedy)
    return data, node


def _constructed(path: Path, node: yaml.Node) -> Any:
    try:
        keep_written(node, lambda scalar: _Constructor(path).construct_document(scalar))
    except OtherValue as error:
        raise InvalidSpec(
            f"{error}.",
            where=f"{path}:{error.node.start_mark.line + 1}",
            remedy="Put it in quotes, to keep it as it is written, or write what is meant: true, false, a plain number.",
        ) from None
    return _Constructor(path).construct_document(node)


def _check_json(text: str, path: Path) -> None:
    try:
        read_json(text)
    except json.JSONDecodeError as error:
        raise InvalidSpec(
            f"{path.name} is not JSON: {error.msg}.",
            where=f"{path}:{error.lineno}",
            remedy="Correct it; comments (//) are allowed, everything else is strict JSON.",
        ) from None
    except RecursionError:
        raise _too_deep(path) from None
    except ValueError as error:  # NaN, a number of too many digits
        raise InvalidSpec(
            f"{path.name} is not JSON: {error}.", where=path, remedy="Correct the number."
        ) from None


def unusable(text: str) -> str | None:
    """What makes a text unusable as a setting (in paths or in output), None where nothing does."""
    if "\0" in text:
        return "holds a NUL character"
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return "holds half a character (a surrogate), which UTF-8 can't write"
    return None


def _text(path: Place) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InvalidSpec(
            f"{path.name} can't be read: {error.strerror or error}.",
            where=path,
            remedy="Give this user the right to read it, and make it a plain file.",
        ) from None
    if len(content) > _MOST_BYTES:
        raise InvalidSpec(
            f"{path.name} is larger than 1 MiB.", where=path, remedy="Keep data out of the pipeline's spec."
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InvalidSpec(
            f"{path.name} is not YAML: it is not UTF-8.", where=f"{path}:{line}", remedy="Save it as UTF-8."
        ) from None


class _Walk:
    """A look at every node before values are made of them; an alias counts as often as it is used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values = 0

    def check(self, node: yaml.Node, above: tuple[int, ...] = ()) -> None:
        """Raise InvalidSpec for what a spec may not have."""
        self.values += 1
        if self.values > _MOST_VALUES:
            raise InvalidSpec(
                f"{self.path.name} has more than {_MOST_VALUES} values, with its aliases written out.",
                where=self._at(node),
                remedy="Use fewer aliases (*name).",
            )
        if id(node) in above:
            raise InvalidSpec(
                "An anchor holds an alias of itself.",
                where=self._at(node),
                remedy="Write the value out, without the alias.",
            )
        if len(above) > _DEEPEST:
            raise _too_deep(self.path)
        inside = (*above, id(node))
        if isinstance(node, yaml.ScalarNode):
            self._check_text(node)
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                self.check(item, inside)
        elif isinstance(node, yaml.MappingNode):
            self._check_keys(node)
            for pair in node.value:
                for item in pair:
                    self.check(item, inside)

    def _check_keys(self, node: yaml.MappingNode) -> None:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # the loader refuses it
            line = key.start_mark.line + 1
            if key.value in lines:
                raise InvalidSpec(
                    f"The key `{ascii(key.value)[1:-1]}` is given twice, on line {lines[key.value]} and on line {line}: "
                    "one of them would have no effect.",
                    where=self._at(key),
                    remedy="Put both into one, or remove one.",
                )
            lines[key.value] = line

    def _check_text(self, node: yaml.ScalarNode) -> None:
        why = unusable(node.value)
        if why is not None:
            raise _wrong_value(node, why, self.path)
        if node.tag == "tag:yaml.org,2002:int" and len(node.value) > _LONGEST_INTEGER:
            raise _wrong_value(node, "is a number of too many digits", self.path)

    def _at(self, node: yaml.Node) -> str:
        return f"{self.path}:{node.start_mark.line + 1}"


def _kind(node: yaml.Node) -> str:
    return str(node.tag).rsplit(":", 1)[-1]


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0][:200]


def _wrong_value(node: yaml.Node, why: str, path: Path) -> InvalidSpec:
    shown = ascii(node.value)[:60] if isinstance(node, yaml.ScalarNode) else "a value"
    return InvalidSpec(
        f"{shown} {why}.",
        where=f"{path}:{node.start_mark.line + 1}",
        remedy="Correct it; a text that only looks like a date or a number goes in quotes.",
    )


def _too_deep(path: Path) -> InvalidSpec:
    return InvalidSpec(
        f"{path.name} is nested deeper than {_DEEPEST} levels.",
        where=path,
        remedy="No setting is that deep: look for brackets that are not closed.",
    )
