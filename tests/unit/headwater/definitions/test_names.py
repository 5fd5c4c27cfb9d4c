"""Every name that becomes a path is refused by name, or its path stays below its root and leads back to the name."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from headwater.checkpoints.layout import FlowState, change_memory, flow_checkpoint
from headwater.checkpoints.listing import list_checkpoints
from headwater.definitions.dataset import quarantine_folder
from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.flow import Flow, FlowKind
from headwater.definitions.names import check_dotted_name, invalid_name, is_file_name, is_folder_name
from headwater.errors import HeadwaterError, InvalidName, InvalidSpec
from headwater.graph.pipeline_project import open_project
from headwater.graph.registry import Registry

_PARTS = (
    *("orders", "a", "_", "Z9", "shop", "LIVE", "live", "x" * 127, "x" * 128, "x" * 129, "x" * 300, "x" * 5000),
    *(".", "..", "...", "../..", "/", "//", "/etc", "a/b", "a\\b", "..\\..", "~", "~root", "*", "?", "[a]", "{a,b}"),
    *("-", "--yes", "-rf", "%2e%2e", "%2F", "a%00b", "\0", "a\0b", "\n", "a\n", "\r", "\t", " ", " a", "a ", "\x7f"),
    *("'", '"', "`", "``", "`a`", "$x", "${env:HOME}", "$(id)", ";", "|", "&", "<a>", "a=b", "a:b", "C:", "a,b"),
    *("con", "NUL", "aux.txt", "COM1", "a.", "a..b", ".a", "_delta_log", "_change_data", "null", "true", "select", "table"),
    *("ä", "a\u0308", "Ω", "ａ", "ı", "İ", "ſ", "\u202e", "\u2028", "\u200b", "\ufeff", "\ud800", "\udcff", "😀", "𝒶", "\U0010ffff"),
    *("", "0", "1a", "²", "٣"),
)  # fmt: skip


def names(count: int = 1000) -> list[str]:
    """Names made of what has broken paths before, always the same ones."""
    chance = random.Random(16)
    drawn = dict.fromkeys(_PARTS)
    while len(drawn) < count:
        parts = chance.choices(_PARTS, k=chance.randint(1, 4))
        if chance.random() < 0.3:
            parts.append("".join(chr(chance.randrange(0x110000)) for _ in range(chance.randint(1, 3))))
        drawn[chance.choice(("", ".", "/", "_")).join(parts)] = None
    return list(drawn)


def below(root: Path, path: Path, name: str) -> None:
    """Make the folder, and see that it is where it should be."""
    path.mkdir(parents=True, exist_ok=True)
    assert path.resolve().is_relative_to(root.resolve()), ascii(name)
    assert path.resolve() != root.resolve(), ascii(name)


def as_dataset(root: Path, name: str) -> None:
    """A table: its folder, its quarantine, its checkpoint, what AUTO CDC keeps beside it."""
    defaults = {"catalog": None, "schema": "shop"}
    parsed = DatasetName.parse(name, **defaults)
    shown = parsed.display(**defaults)
    assert DatasetName.parse(shown, **defaults) == parsed
    for path in (root / parsed.location, Path(quarantine_folder(str(root / parsed.location)))):
        below(root, path, name)
    below(root / "system" / "auto_cdc", change_memory(root, shown), name)


def as_flow(root: Path, name: str) -> None:
    """A flow: the folder with its epochs, found again under its name."""
    registry = Registry(schema="shop")
    registry.add_flow(Flow(name, "orders", lambda: None, FlowKind.APPEND))
    checkpoint = flow_checkpoint(root, "orders", name)
    below(root / "checkpoints" / "orders", checkpoint.epoch_folder(0), name)
    checkpoint.write_state(FlowState())
    assert name in {entry.flow for entry in list_checkpoints(root)}
    assert checkpoint.folder.parent == root / "checkpoints" / "orders"


def as_pipeline(root: Path, name: str) -> None:
    """A pipeline: the folder of its state."""
    folder = root / "pipeline"
    folder.mkdir(exist_ok=True)
    (folder / "pipeline.yml").write_text(yaml.safe_dump({"name": name}))
    project = open_project(folder, storage=root / "storage", environment={})
    below(root / "storage" / "pipelines", project.state_folder, name)
    assert project.state_folder.name == name
    assert is_folder_name(name)


def as_reader(root: Path, name: str) -> None:
    """A reader of changes: its position is a file."""
    if not is_file_name(name):
        raise invalid_name(name, "reader")
    file = root / f"{name}.{'t' * 20}.json"
    file.write_text("")
    assert file.resolve().parent == root.resolve()
    file.unlink()


@pytest.mark.parametrize("kind", [as_dataset, as_flow, as_pipeline, as_reader])
def test_a_thousand_names(tmp_path: Path, kind: Callable[[Path, str], None]):
    """Dots, slashes, quotes, signs of all planes, NUL, line ends, reserved words, very long ones."""
    taken = 0
    for name in names():
        error = refusal(kind, tmp_path, name)
        if error is None:
            taken += 1
            continue
        str(error).encode()  # it can be printed anywhere
        assert len(str(error)) < 1000, ascii(name)
        assert "\n" not in error.what.split("\n    ")[0], ascii(name)
    assert taken >= 10


def refusal(kind: Callable[[Path, str], None], root: Path, name: str) -> HeadwaterError | None:
    """The error of a name, None where it was taken."""
    try:
        kind(root, name)
    except (InvalidName, InvalidSpec) as error:
        return error
    return None


@pytest.mark.parametrize(
    "name", [".", "..", "a/b", "../a", "a..b", ".a", "a.", "a\n", "", "x" * 221, None, 3]
)
def test_what_names_no_flow(name: str):
    """Each would be another folder than its own."""
    with pytest.raises(InvalidName, match="can't name a flow"):
        check_dotted_name(name, "flow")


def test_three_long_parts_are_too_long_together():
    """Each part is short enough, and the folder of the checkpoint has them all in its name."""
    with pytest.raises(InvalidName, match="can't name a dataset"):
        DatasetName.parse(".".join(["x" * 100] * 3), catalog=None, schema="shop")


def test_the_error_is_one_of_ours():
    """Whoever catches HeadwaterError has them all."""
    assert issubclass(InvalidName, HeadwaterError)
