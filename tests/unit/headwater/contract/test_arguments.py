"""The arguments of an update, which both the command line and the Spark job read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headwater.commands.command_line import main
from headwater.commands.doctor_arguments import doctored
from headwater.contract.arguments import Parser, RunArguments, parse_run_arguments
from headwater.contract.printing import print_table
from headwater.errors import UsageError

FULL = RunArguments(
    pipeline="pipelines/orders",
    storage="/s p",
    warehouse="w",
    parameters={"landing": "a=b,c", "empty": ""},
    as_json=True,
    tables=("a", "b"),
    full_refresh=("c",),
    reset_checkpoint=("flow",),
    flows=("f", "g"),
    dry_run=True,
    request_id="manual__2026-01-01T00:00:00+00:00",
    attempt=2,
    max_attempts=3,
    requested_at=datetime(2026, 1, 1, 0, 0, 0, 123456, UTC),
    no_skip=True,
    validate=True,
    strict=True,
)


@pytest.mark.parametrize(
    "arguments",
    [
        FULL,
        RunArguments("p"),
        RunArguments("p", full_refresh_all=True),
        RunArguments("p", refresh_failed=True),
    ],
)
def test_there_and_back(arguments):
    """What is written as a command line is read as the same arguments."""
    assert parse_run_arguments(arguments.to_argv()) == arguments


def test_lists_by_comma_and_by_repetition():
    """Names may stand in one list or in several flags, with blanks around them."""
    assert parse_run_arguments(["p", "--tables", "a, b", "--tables=c"]).tables == ("a", "b", "c")


def test_a_request_without_a_zone_was_made_in_utc():
    """A time of day that names no zone is not read by the driver's own."""
    requested_at = parse_run_arguments(["p", "--requested-at", "2026-01-31T08:00"]).requested_at
    assert requested_at == datetime(2026, 1, 31, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["p", "--unknown"],
        ["p", "--param", "no_sign"],
        ["p", "--param", "=value"],
        ["p", "--tables", ","],
        ["p", "--full-refresh", "a", "--full-refresh-all"],
        ["p", "--tables", "a", "--full-refresh-all"],
        ["p", "--flows", "a", "--full-refresh-all"],
        ["p", "--refresh-failed", "--tables", "a"],
        ["p", "--refresh-failed", "--full-refresh-all"],
        ["p", "--flows", ","],
        ["p", "--attempt", "x"],
        ["p", "--attempt", "0"],
        ["p", "--table", "abbreviated"],
        ["p", "--requested-at", "yesterday"],
    ],
)
def test_wrong_use(argv):
    """Wrong arguments are a UsageError, which ends with code 2 and says how it should be."""
    with pytest.raises(UsageError) as caught:
        parse_run_arguments(argv)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(("given", "remedy"), [("lits", "Did you mean 'list'? "), ("x", "")])
def test_a_wrong_choice_is_told_the_nearest(given: str, remedy: str):
    """Where there is one; the usage line follows in any case."""
    parser = Parser(prog="headwater", add_help=False)
    parser.add_argument("action", choices=["list", "show"])
    with pytest.raises(UsageError) as caught:
        parser.parse_args([given])
    assert caught.value.remedy == f"{remedy}usage: headwater {{list,show}}"


def test_an_unknown_option_of_a_verb_is_told_the_nearest(capsys: pytest.CaptureFixture[str]):
    """The remedy names the option that was probably meant, and has the usage of the verb that was asked for."""
    assert main(["run", "orders", "--tabels", "a"]) == 2
    shown = capsys.readouterr().err
    assert "Unrecognized arguments: --tabels a." in shown
    assert "Did you mean '--tables'? usage: headwater run " in shown
    assert main(["run", "orders", "silver"]) == 2
    assert "what to do: usage: headwater run " in capsys.readouterr().err


def test_a_slip_in_an_action_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``checkpoints snapshto DIR`` asks for an action; a folder of such a name is a pipeline, as any other word is."""
    monkeypatch.chdir(tmp_path)
    assert doctored(["checkpoints", "snapshto", "orders"]) == ["checkpoints", "snapshto", "orders"]
    assert doctored(["checkpoints", "orders"]) == ["checkpoints", "list", "orders"]
    (tmp_path / "snapshots").mkdir()
    assert doctored(["checkpoints", "snapshots"]) == ["checkpoints", "list", "snapshots"]


def test_no_rows_are_one_line(capsys: pytest.CaptureFixture[str]):
    """For a table without rows one line says so, and nothing is drawn."""
    print_table("orders: files", ("name", "rows"), [])
    assert capsys.readouterr().out == "orders: files: none\n"


def test_selective():
    """Only a plain update may be skipped for lack of news."""
    assert not RunArguments("p", as_json=True, no_skip=True, request_id="r").selective
    for changed in (
        {"tables": ("a",)},
        {"full_refresh_all": True},
        {"dry_run": True},
        {"validate": True},
        {"flows": ("f",)},
        {"refresh_failed": True},
    ):
        assert RunArguments("p", **changed).selective
