"""Values of settings as they are written: YAML counts ``010`` as 8, ``1.10`` as 1.1, ``1:30`` as 90, and takes ``no`` for false.

What a section of texts has is a text: a number stays the one that stands there. A word that is a truth value to YAML alone is refused,
since nobody can say which of the two was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import yaml

# Sections of texts, at whatever depth: settings of Lakeflow have their own.
_TEXTS = ("configuration", "spark", "spark_conf")
_PARAMETERS = "parameters"
_TAG = "tag:yaml.org,2002:"
_NUMBERS = (f"{_TAG}int", f"{_TAG}float")


class OtherValue(ValueError):
    """YAML makes something else of a value than what is written. ``node``: where it stands."""

    def __init__(self, key: str, node: yaml.ScalarNode, becomes: str) -> None:
        super().__init__(f"`{key}`: YAML reads {node.value} as {becomes}")
        self.node = node


def keep_written(root: yaml.Node, valued: Callable[[yaml.ScalarNode], object]) -> None:
    """Make texts of the numbers in sections of texts; a node's tag says what is made of it.

    Args:
        root: the document, whose nodes are changed.
        valued: what YAML makes of a node.

    Raises:
        OtherValue: a truth value that is spelled in YAML's own way, or a parameter that is counted as another number.
    """
    for name, value in _pairs(root):
        if name == _PARAMETERS:
            for key, node in _scalars(value):
                if node.tag in _NUMBERS and _counted_otherwise(node, valued):
                    raise OtherValue(key, node, str(valued(node)))
    for key, node in _of_texts(root):
        if node.tag in _NUMBERS and str(valued(node)) != node.value:
            node.tag = f"{_TAG}str"
        if node.tag == f"{_TAG}bool" and node.value.lower() not in ("true", "false"):
            raise OtherValue(key, node, f"the truth value {str(valued(node)).lower()}")


def _counted_otherwise(node: yaml.ScalarNode, valued: Callable[[yaml.ScalarNode], object]) -> bool:
    """Whether a number is not the decimal one that its digits are: ``1.50`` is 1.5, and ``010`` is not 10."""
    try:
        return float(node.value) != float(str(valued(node)))
    except (ValueError, OverflowError):
        return True


def _of_texts(node: yaml.Node, depth: int = 0) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """The values of each section of texts, and those of parameters that are given alone."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _of_texts(item, depth + 1)
    for name, value in _pairs(node):
        if name in _TEXTS or (name == _PARAMETERS and not depth):
            yield from _scalars(value)
        elif isinstance(value, yaml.CollectionNode):
            yield from _of_texts(value, depth + 1)


def _scalars(node: yaml.Node) -> Iterator[tuple[str, yaml.ScalarNode]]:
    for name, value in _pairs(node):
        if isinstance(value, yaml.ScalarNode):
            yield name, value


def _pairs(node: yaml.Node) -> Iterator[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                yield key.value, value
