"""A pipeline with three batches behind it, made once with real Spark and put back before each test; ways to damage it."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline_case import PipelineCase

from headwater.commands.command_line import main
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.flow_cases import named_case
from headwater.doctor.start_facts import flow_start
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import stored_manifest
from headwater.preflight.checks import examine
from headwater.preflight.damage import Damage as Finding
from headwater.preflight.damage import Repair
from headwater.storage.place import Place, parts_below
from headwater.storage.walking import remove_tree

# files -> bronze (file stream); bronze -> silver (Delta to Delta); bronze -> running (stateful, merged by key)
SOURCE = """
@dp.table
def bronze():
    return spark.readStream.schema("id INT, team STRING, points INT").json(LANDING)

@dp.table
def silver():
    return dp.read_stream("bronze").select("id", (F.col("points") * 2).alias("twice"))

@dp.table
def running():
    return dp.read_stream("bronze").groupBy("team").count()
"""
FLOWS = ("bronze", "silver", "running")

Damage = Callable[[Place], None]


class Prepared:
    """The pipeline, and a copy of all that it wrote."""

    def __init__(self, root: Path) -> None:
        self.case = PipelineCase(root / "live", SOURCE)
        self._copy = root / "kept"
        for _ in range(3):
            self.land()
            assert self.case.update().state == "COMPLETED"
        shutil.copytree(self.case.root, self._copy)

    def land(self) -> None:
        """Four more rows."""
        first = len(list(self.case.landing.glob("*.json"))) * 4
        self.case.land([{"id": first + n, "team": "abc"[n % 3], "points": n} for n in range(4)])

    def reset(self) -> None:
        """As it was after the third update."""
        shutil.rmtree(self.case.root)
        shutil.copytree(self._copy, self.case.root)
        self.case._files_landed = 3

    def folder(self, flow: str) -> Path:
        """The live epoch of a flow."""
        return self.case.checkpoint(flow).live_folder()

    def flow_case(self, flow: str) -> FlowCase:
        """A flow as the doctor sees it."""
        return named_case(self.case.project(), flow)

    def conditions(self, flow: str, *, deep: bool = False) -> list[tuple[str, bool]]:
        """What the checks find without Spark, each with whether the next start makes it good."""
        return conditions_of(self.case, flow, deep=deep)

    def call(self, *arguments: str) -> tuple[int, dict[str, Any], str]:
        """What a verb answers: exit code, the JSON of the last line, and standard error."""
        verb, *rest = arguments
        action = [rest.pop(0)] if verb == "checkpoints" else []
        roots = [
            str(self.case.folder),
            *rest,
            f"--storage={self.case.storage}",
            f"--warehouse={self.case.warehouse}",
        ]
        output, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(output), redirect_stderr(errors):
            code = main([verb, *action, *roots, "--json"])
        return code, json.loads(output.getvalue().splitlines()[-1]), errors.getvalue()

    def tables_equal_the_batch(self) -> None:
        """Every table is what its query gives over all that was landed."""
        rows = [json.loads(line) for file in sorted(self.case.landing.glob("*.json")) for line in file.open()]
        assert Counter(self.case.rows("bronze")) == Counter((r["id"], r["team"], r["points"]) for r in rows)
        assert Counter(self.case.rows("silver")) == Counter((r["id"], r["points"] * 2) for r in rows)
        assert dict(self.case.rows("running")) == Counter(r["team"] for r in rows)


def conditions_of(case: PipelineCase, flow: str, *, deep: bool = False) -> list[tuple[str, bool]]:
    """What the checks find in a flow without Spark, each with whether the next start makes it good."""
    return conditions_in(case.project(), flow, deep=deep)


def conditions_in(project: PipelineProject, flow: str, *, deep: bool = False) -> list[tuple[str, bool]]:
    """As ``conditions_of``, wherever the roots of the pipeline lie."""
    manifest = stored_manifest(project)
    entry = next(item for item in manifest.flows if item.name == flow)
    findings = examine(flow_start(project, manifest, entry, deep=deep))
    for damage in findings:
        check_message(damage, flow)
    return [(damage.condition, damage.mends_itself) for damage in findings]


def check_message(damage: Finding, flow: str) -> None:
    """Each message says whose it is, where, and what to do by a command that is there; never that something is "corrupt"."""
    error = damage.error
    # A hole in a table's log is everybody's.
    assert flow in f"{error.what} {error.remedy}" or damage.condition.endswith("LOG_HOLE")
    assert "corrupt" not in str(error).lower()
    assert error.where
    assert damage.evidence
    actions = {match[1] for match in re.finditer(r"--action ([a-z-]+)", error.remedy)}
    assert actions <= {str(repair) for repair in Repair}
    by_hand = ("The next start", "Restore the file", "Put ", "Run it with", "Run the update with")
    assert actions or "--full-refresh" in error.remedy or error.remedy.startswith(by_hand), error.remedy


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Prepared:
    """The pipeline, made once with real Spark."""
    return Prepared(tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def done(prepared: Prepared) -> Prepared:
    """The pipeline as it was after its third update."""
    prepared.reset()
    return prepared


def _at(folder: Place, path: str) -> Place:
    last = max(int(file.name) for file in (folder / "commits").iterdir() if file.name.isdigit())
    # The state after a batch has the number of the next one; on a store, a name of its own behind it.
    return folder / path.format(last=last, before=last - 1, next=last + 1)


def _all(folder: Place, path: str) -> list[Place]:
    """Where a pattern leads."""
    place = _at(folder, path)
    return list(folder.glob("/".join(parts_below(place, folder)))) if "*" in path else [place]


def put(path: str, text: str) -> Damage:
    """The file holds something else, and no checksum tells."""

    def damage(folder: Place) -> None:
        file = _at(folder, path)
        file.write_text(text)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    return damage


def empty(path: str) -> Damage:
    """The file is there and empty, as after a full disk."""
    return put(path, "")


def cut(path: str) -> Damage:
    """The file ends in the middle."""

    def damage(folder: Place) -> None:
        file = _at(folder, path)
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    return damage


def lose(*paths: str) -> Damage:
    """Files or folders are gone."""

    def damage(folder: Place) -> None:
        for target in [target for path in paths for target in _all(folder, path)]:
            if target.is_dir():
                remove_tree(target)
            else:
                target.unlink()
                target.with_name(f".{target.name}.crc").unlink(missing_ok=True)

    return damage


def flip(path: str) -> Damage:
    """A byte is another one, and the checksum beside is as it was."""

    def damage(folder: Place) -> None:
        (file, *_) = _all(folder, path)
        raw = bytearray(file.read_bytes())
        raw[len(raw) // 2] ^= 0xFF
        file.write_bytes(bytes(raw))

    return damage


def copy(first: str, second: str) -> Damage:
    """The second file has the content of the first, and no checksum tells."""

    def damage(folder: Place) -> None:
        put(second, _at(folder, first).read_text())(folder)

    return damage


def swap(first: str, second: str) -> Damage:
    """Two files have each other's content, and each other's checksum."""

    def damage(folder: Place) -> None:
        one, other = _at(folder, first), _at(folder, second)
        for pair in ((one, other), tuple(file.with_name(f".{file.name}.crc") for file in (one, other))):
            if all(file.is_file() for file in pair):
                contents = [file.read_bytes() for file in pair]
                for file, content in zip(pair, reversed(contents), strict=True):
                    file.write_bytes(content)

    return damage


def both(*damages: Damage) -> Damage:
    """One after the other."""

    def damage(folder: Place) -> None:
        for each in damages:
            each(folder)

    return damage
