"""The stack as a whole: one at a time for a folder, ports as they are set."""

import socket
from pathlib import Path

import pytest

from headwater.errors import UsageError
from headwater.runtime.conditions import PortTaken
from headwater_demo.stack import local_stack


def test_one_demo_at_a_time(tmp_path: Path):
    """A second stack on the same folder is refused with a sentence; after the first it may come."""
    with (
        local_stack(tmp_path, tmp_path / "demo"),
        pytest.raises(UsageError, match="running already"),
        local_stack(tmp_path, tmp_path / "demo"),
    ):
        pytest.fail("two stacks had the same folder")
    with local_stack(tmp_path, tmp_path / "demo") as stack:
        assert stack.folder == tmp_path / "demo"


@pytest.mark.parametrize(
    ("setting", "part"), [("HEADWATER_KAFKA_PORT", "broker"), ("HEADWATER_AIRFLOW_PORT", "airflow")]
)
def test_a_port_that_was_set_has_to_be_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, part: str
):
    """A taken port is refused before anything starts, and the setting that chose it is named."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv(setting, str(server.getsockname()[1]))
        with local_stack(tmp_path, tmp_path / "demo") as stack, pytest.raises(PortTaken) as caught:
            getattr(stack, part)
    assert setting in caught.value.remedy


def test_a_port_has_to_be_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A word in place of a port is an error that says so."""
    monkeypatch.setenv("HEADWATER_AIRFLOW_PORT", "http")
    with (
        local_stack(tmp_path, tmp_path / "demo") as stack,
        pytest.raises(PortTaken, match="not a port number"),
    ):
        assert stack.airflow


def test_updates_find_what_they_need(tmp_path: Path):
    """Folders, broker and Java are in the environment of Airflow, and this Python's programs come first."""
    with local_stack(tmp_path, tmp_path / "demo") as stack:
        variables = stack.airflow.environment()
        assert variables["HEADWATER_KAFKA"] == stack.broker.bootstrap_servers
        assert Path(variables["HEADWATER_WAREHOUSE"]).is_absolute()
        assert (Path(variables["PATH"].split(":")[0]) / "airflow").exists()
        assert Path(variables["JAVA_HOME"], "bin", "java").exists()
