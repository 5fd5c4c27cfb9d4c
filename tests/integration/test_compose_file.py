"""The Compose files are valid for the real Compose, publish nothing to the network, and hold no secret."""

import importlib.util
import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from headwater_demo.airflow_services import SERVICES

COMPOSE_FILE = Path(__file__).parents[2] / "docker-compose.yaml"
SECRETS = {
    "postgres_password",
    "airflow_admin_password",
    "airflow_fernet_key",
    "airflow_jwt_secret",
    "airflow_secret_key",
    "spark_secret",
}
OF_CELERY = {"redis_password"}
FILES = {
    "alone": (COMPOSE_FILE,),
    "with Celery": (COMPOSE_FILE, COMPOSE_FILE.with_name("docker-compose.celery.yaml")),
}


def compose(files: Sequence[Path], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the packaged Compose binary; its Python entry point hides the exit code."""
    spec = importlib.util.find_spec("compose")
    assert spec is not None
    assert spec.origin is not None
    binary = Path(spec.origin).with_name("docker-compose")
    environment = {"PATH": os.defpath, "HOME": "/nonexistent"}
    named = [word for file in files for word in ("--file", str(file))]
    command = [str(binary), *named, "--env-file", "/dev/null", "config", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module", params=FILES)
def rendered(request: pytest.FixtureRequest) -> dict:
    """The file as Compose understands it, alone and with that of Celery over it."""
    answer = compose(FILES[request.param], "--format", "json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


@pytest.fixture
def celery(rendered: dict) -> bool:
    """Whether workers of Celery run tasks."""
    return "airflow-worker" in rendered["services"]


@pytest.mark.parametrize("files", FILES.values(), ids=FILES)
def test_the_file_is_valid(files: Sequence[Path]):
    """Compose accepts the file without a warning."""
    answer = compose(files, "--quiet")
    assert (answer.returncode, answer.stderr) == (0, "")


def test_a_misspelled_key_is_refused(tmp_path: Path):
    """The check is a real one: the same file with one key misspelled is refused."""
    wrong = tmp_path / "docker-compose.yaml"
    wrong.write_text(COMPOSE_FILE.read_text().replace("depends_on:", "dependson:"))
    answer = compose([wrong], "--quiet")
    assert answer.returncode != 0
    assert "dependson" in answer.stderr


def test_every_secret_is_a_file_that_the_makefile_makes(rendered: dict, celery: bool, tmp_path: Path):
    """Fresh ones, which others on the machine can't reach; what is there already is left alone, what is missing is made."""
    files = {name: Path(secret["file"]) for name, secret in rendered["secrets"].items()}
    assert {name: (file.name, file.parent.name) for name, file in files.items()} == {
        name: (name, ".secrets") for name in SECRETS | (OF_CELERY if celery else set())
    }
    make = ["make", "--silent", "--file", str(COMPOSE_FILE.with_name("Makefile")), "compose-env"]
    made = []
    for _ in range(2):
        subprocess.run(make, cwd=tmp_path, check=True, capture_output=True)
        made.append({file.name: file.read_text() for file in (tmp_path / ".secrets").iterdir()})
    assert made[0] == made[1]
    assert set(made[0]) == SECRETS | OF_CELERY
    assert min(map(len, made[0].values())) >= 16
    assert len(set(made[0].values())) == len(SECRETS | OF_CELERY)
    (tmp_path / ".secrets" / "redis_password").unlink()
    subprocess.run(make, cwd=tmp_path, check=True, capture_output=True)
    again = {file.name: file.read_text() for file in (tmp_path / ".secrets").iterdir()}
    assert {name for name in again if again[name] != made[0][name]} == {"redis_password"}
    assert (tmp_path / ".secrets").stat().st_mode & 0o077 == 0


def test_no_variable_holds_a_secret(rendered: dict):
    """Variables are seen by whoever may inspect a container, and by each of its processes: they name files at most."""
    for name, service in rendered["services"].items():
        variables = service.get("environment") or {}
        for variable, value in variables.items():
            if any(
                word in variable
                for word in ("PASSWORD", "SECRET", "FERNET", "ALCHEMY_CONN", "BROKER_URL", "RESULT_BACKEND")
            ):
                assert "/run/secrets/" in value or variable.endswith("PASSWORDS_FILE"), (name, variable)
        mounted = {secret["source"] for secret in service.get("secrets", [])}
        named = {word.rpartition("/")[2] for text in [*variables.values(), *(service.get("command") or [])]
                 for word in re.findall(r"/run/secrets/\w+", str(text))}  # fmt: skip
        assert named <= mounted, name


def test_airflow_reads_its_secrets_by_commands(rendered: dict, celery: bool, tmp_path: Path):
    """Each command, run here with files of this test, gives what Airflow needs, and no line break after it: Airflow would take that for a part."""
    for name in SECRETS | OF_CELERY:
        (tmp_path / name).write_text(f"of-{name}")
    variables = rendered["services"]["airflow-scheduler"]["environment"]
    commands = {name: value for name, value in variables.items() if name.endswith("_CMD")}
    assert len(commands) == (6 if celery else 4)
    for command in commands.values():
        here = command.replace("/run/secrets", str(tmp_path))
        answer = subprocess.run(["sh", "-c", here], capture_output=True, text=True, check=True).stdout
        (secret,) = re.findall(r"/run/secrets/(\w+)", command)
        servers = {
            "postgres_password": f"postgresql+psycopg2://airflow:of-{secret}@postgres/airflow",
            "redis_password": f"redis://:of-{secret}@redis:6379/0",
        }
        assert answer == servers.get(secret, f"of-{secret}")


def test_only_who_checks_passwords_sees_them(rendered: dict):
    """Tasks run in the scheduler's container, and the code of pipelines in the triggerer's and the processor's, too."""
    who = {name for name in rendered["services"] if "airflow-passwords" in mounts(rendered, name)}
    assert who == {"airflow-init", "airflow-api-server"}


@pytest.mark.parametrize("rendered", ["with Celery"], indirect=True)
def test_a_worker_knows_the_broker_only(rendered: dict):
    """Code of pipelines runs there: no other secret, no variable that reads one, and no port of the broker outside (decision 0227)."""
    services = rendered["services"]
    worker = services["airflow-worker"]
    assert {secret["source"] for secret in worker["secrets"]} == OF_CELERY
    read = {
        word for value in worker["environment"].values() for word in re.findall(r"/run/secrets/(\w+)", value)
    }
    assert read == OF_CELERY
    assert "airflow-passwords" not in mounts(rendered, "airflow-worker")
    assert "ports" not in services["redis"]
    assert {
        name for name, one in services.items() if OF_CELERY & {s["source"] for s in one.get("secrets", [])}
    } == {
        "redis",
        "airflow-scheduler",
        "airflow-worker",
    }
    assert {
        one["environment"]["AIRFLOW__CORE__EXECUTOR"]
        for name, one in services.items()
        if name.startswith("airflow-")
    } == {"CeleryExecutor"}


@pytest.mark.parametrize("rendered", ["with Celery"], indirect=True)
def test_airflows_services_have_the_provider(rendered: dict):
    """Each of them is of the image that is built with it, from a lock with hashes of its own."""
    images = {name: one for name, one in rendered["services"].items() if name.startswith("airflow-")}
    assert {(one["image"], one["build"]["args"]["CELERY"]) for one in images.values()} == {
        ("headwater:celery", "1")
    }
    dockerfile = COMPOSE_FILE.with_name("Dockerfile").read_text()
    assert (
        '[ -z "$CELERY" ] || pip install --require-hashes --no-deps -r requirements-celery.lock' in dockerfile
    )
    assert "!requirements-celery.lock" in COMPOSE_FILE.with_name(".dockerignore").read_text()


def test_every_container_has_limits_and_every_service_a_check(rendered: dict):
    """Memory and processors are bounded; what others wait for says when it is ready."""
    services = rendered["services"]
    assert [
        name for name, one in services.items() if "memory" not in one["deploy"]["resources"]["limits"]
    ] == []
    lasting = {name for name, one in services.items() if one.get("restart") != "no"}
    assert lasting - {"spark-worker", "sample-data"} <= {
        name for name, one in services.items() if "healthcheck" in one
    }


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


def mounts(rendered: dict, service: str) -> set[str]:
    """The volumes that a service sees."""
    return {volume["source"] for volume in rendered["services"][service].get("volumes", [])}


def test_code_of_pipelines_sees_nothing_of_airflows(rendered: dict):
    """Passwords and settings of Airflow are mounted into its own services only."""
    others = [name for name in rendered["services"] if not name.startswith("airflow-")]
    assert {"spark-master", "spark-worker", "sample-data", "kafka"} <= set(others)
    assert [name for name in others if "airflow" in mounts(rendered, name)] == []
    assert all("airflow" in mounts(rendered, f"airflow-{name}") for name in SERVICES)


def test_only_who_has_the_secret_runs_on_the_cluster(rendered: dict, celery: bool):
    """Master, workers and drivers read one file with the secret, which nobody else sees and only its maker may write."""
    services = rendered["services"]
    readers = {name for name in services if "spark-conf" in mounts(rendered, name)}
    assert readers == {
        "spark-conf",
        "spark-master",
        "spark-worker",
        "airflow-init",
        *(f"airflow-{name}" for name in SERVICES),
        *(["airflow-worker"] if celery else []),
    }
    for name in readers - {"spark-conf"}:
        assert services[name]["environment"]["SPARK_CONF_DIR"] == "/opt/spark-conf"
        (volume,) = [v for v in services[name]["volumes"] if v["source"] == "spark-conf"]
        assert volume["read_only"]
    assert "spark.authenticate.secret" in " ".join(services["spark-conf"]["command"])
    assert "umask 077" in " ".join(services["spark-conf"]["command"])


def test_drivers_have_a_pool_that_is_made(rendered: dict):
    """Who makes the DAGs names a pool for drivers, and it is there before anything is scheduled: tasks of a missing one would wait for good."""
    pool = rendered["services"]["airflow-dag-processor"]["environment"]["HEADWATER_POOL"]
    made = " ".join(rendered["services"]["airflow-init"]["command"])
    assert re.search(rf"airflow db migrate && exec airflow pools set {pool} [1-9]", made)


def test_workers_write_where_they_may(rendered: dict):
    """Spark's own place for applications is among its programs, which belong to root."""
    assert rendered["services"]["spark-worker"]["environment"]["SPARK_WORKER_DIR"].startswith("/tmp/")


def test_containers_do_not_run_as_root(rendered: dict):
    """The image ends with an ordinary user, and no service asks for root; Redis' image would begin as root."""
    lines = COMPOSE_FILE.with_name("Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("USER ")] == ["USER headwater"]
    services = rendered["services"]
    assert {name: one["user"] for name, one in services.items() if "user" in one} in ({}, {"redis": "redis"})
    assert not any(service.get("privileged") for service in services.values())
