"""The Compose file is valid for the real Compose, publishes nothing to the network, and holds no secret."""

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from headwater_demo.airflow_services import SERVICES

COMPOSE_FILE = Path(__file__).parents[2] / "docker-compose.yaml"
SECRETS = (
    "POSTGRES_PASSWORD",
    "AIRFLOW_ADMIN_PASSWORD",
    "AIRFLOW_FERNET_KEY",
    "AIRFLOW_JWT_SECRET",
    "AIRFLOW_SECRET_KEY",
    "SPARK_SECRET",
)


def compose(
    file: Path, *arguments: str, secrets: tuple[str, ...] = SECRETS
) -> subprocess.CompletedProcess[str]:
    """Run the packaged Compose binary; its Python entry point hides the exit code."""
    spec = importlib.util.find_spec("compose")
    assert spec is not None
    assert spec.origin is not None
    binary = Path(spec.origin).with_name("docker-compose")
    environment = {"PATH": os.defpath, "HOME": "/nonexistent", **dict.fromkeys(secrets, "for-this-test")}
    command = [str(binary), "--file", str(file), "--env-file", "/dev/null", "config", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def rendered() -> dict:
    """The file as Compose understands it."""
    answer = compose(COMPOSE_FILE, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_the_file_is_valid():
    """Compose accepts the file without a warning."""
    answer = compose(COMPOSE_FILE, "--quiet")
    assert (answer.returncode, answer.stderr) == (0, "")


def test_a_misspelled_key_is_refused(tmp_path: Path):
    """The check is a real one: the same file with one key misspelled is refused."""
    wrong = tmp_path / "docker-compose.yaml"
    wrong.write_text(COMPOSE_FILE.read_text().replace("depends_on:", "dependson:"))
    answer = compose(wrong, "--quiet")
    assert answer.returncode != 0
    assert "dependson" in answer.stderr


@pytest.mark.parametrize("secret", SECRETS)
def test_each_secret_has_to_be_given(secret: str):
    """No secret has a default: without it Compose refuses and names the way to make it."""
    answer = compose(COMPOSE_FILE, "--quiet", secrets=tuple(name for name in SECRETS if name != secret))
    assert answer.returncode != 0
    assert "make compose-env" in answer.stderr


def test_ports_are_published_on_loopback_only(rendered: dict):
    """Nothing of the stack can be reached from another machine."""
    published = [port for service in rendered["services"].values() for port in service.get("ports", [])]
    assert published
    assert {port["host_ip"] for port in published} == {"127.0.0.1"}


def test_airflow_runs_the_commands_of_the_demo(rendered: dict):
    """Each service of Airflow has the very command that the local stack starts."""
    services = rendered["services"]
    assert {name: tuple(services[f"airflow-{name}"]["command"]) for name in SERVICES} == SERVICES


def test_the_image_is_built_from_the_lock():
    """The image installs the locked set, hashes required, and fetches the pinned jars."""
    dockerfile = COMPOSE_FILE.with_name("Dockerfile").read_text()
    assert "pip install --require-hashes -r requirements.lock" in dockerfile
    assert "python -m headwater.runtime.jars" in dockerfile


def test_the_source_has_no_literal_secret():
    """Whatever is named like a secret comes from the environment."""
    source = yaml.safe_load(COMPOSE_FILE.read_text())
    variables = source["x-airflow"]["environment"] | source["services"]["postgres"]["environment"]
    named = [
        value for key, value in variables.items() if key.endswith(("_KEY", "_SECRET", "_PASSWORD", "_CONN"))
    ]
    assert len(named) >= 5
    assert all("${" in value for value in named)


def mounts(rendered: dict, service: str) -> set[str]:
    """The volumes that a service sees."""
    return {volume["source"] for volume in rendered["services"][service].get("volumes", [])}


def test_code_of_pipelines_sees_nothing_of_airflows(rendered: dict):
    """Passwords and settings of Airflow are mounted into its own services only."""
    others = [name for name in rendered["services"] if not name.startswith("airflow-")]
    assert {"spark-master", "spark-worker", "sample-data", "kafka"} <= set(others)
    assert [name for name in others if "airflow" in mounts(rendered, name)] == []
    assert all("airflow" in mounts(rendered, f"airflow-{name}") for name in SERVICES)


def test_only_who_has_the_secret_runs_on_the_cluster(rendered: dict):
    """Master, workers and drivers read one file with the secret, which nobody else sees and only its maker may write."""
    services = rendered["services"]
    readers = {name for name in services if "spark-conf" in mounts(rendered, name)}
    assert readers == {
        "spark-conf",
        "spark-master",
        "spark-worker",
        "airflow-init",
        *(f"airflow-{name}" for name in SERVICES),
    }
    for name in readers - {"spark-conf"}:
        assert services[name]["environment"]["SPARK_CONF_DIR"] == "/opt/spark-conf"
        (volume,) = [v for v in services[name]["volumes"] if v["source"] == "spark-conf"]
        assert volume["read_only"]
    assert "spark.authenticate.secret" in " ".join(services["spark-conf"]["command"])
    assert "umask 077" in " ".join(services["spark-conf"]["command"])
    assert "for-this-test" not in " ".join(services["spark-conf"]["command"])


def test_containers_do_not_run_as_root(rendered: dict):
    """The image ends with an ordinary user, and no service asks for another one."""
    lines = COMPOSE_FILE.with_name("Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("USER ")] == ["USER headwater"]
    assert all(
        "user" not in service and not service.get("privileged") for service in rendered["services"].values()
    )
