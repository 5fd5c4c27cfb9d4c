"""The client of Airflow logs in when it has to, and says what Airflow refuses."""

import json

import httpx
import pytest

from headwater_demo.airflow_client import AirflowClient, AirflowRefused, DagRun, TaskState


class FakeAirflow:
    """Answers like Airflow, to those who bring the token."""

    def __init__(self) -> None:
        self.logins = 0
        self.bodies: list[dict] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            self.logins += 1
            right = json.loads(request.content) == {"username": "admin", "password": "right"}
            return httpx.Response(201, json={"access_token": "t"}) if right else httpx.Response(401)
        if request.headers.get("Authorization") != "Bearer t":
            return httpx.Response(401)
        if request.method in {"POST", "PATCH"}:
            self.bodies.append(json.loads(request.content))
            return httpx.Response(200, json={})
        return self.read(request.url.path.removeprefix("/api/v2"))

    def read(self, path: str) -> httpx.Response:
        task = {"task_id": "update", "state": None, "try_number": 0, "duration": None}
        answers = {
            "/dags/orders": {},
            "/dags/orders/dagRuns": {"dag_runs": [{"dag_run_id": "r", "state": "running"}]},
            "/dags/orders/dagRuns/r/taskInstances": {"task_instances": [task]},
            "/importErrors": {"import_errors": [{"filename": "orders.py", "stack_trace": "SyntaxError"}]},
        }
        return (
            httpx.Response(200, json=answers[path])
            if path in answers
            else httpx.Response(404, text="no such")
        )


@pytest.fixture
def airflow() -> FakeAirflow:
    """An Airflow that knows one DAG."""
    return FakeAirflow()


def client(airflow: FakeAirflow, password: str = "right") -> AirflowClient:
    """Return a client of the fake."""
    http = httpx.Client(transport=httpx.MockTransport(airflow))
    return AirflowClient("http://airflow", "admin", password, http)


def test_it_logs_in_once(airflow: FakeAirflow):
    """The token is fetched for the first request and used for the next."""
    connected = client(airflow)
    assert connected.runs("orders") == [DagRun("r", "running")]
    assert connected.tasks("orders", "r") == [TaskState("update", "waiting", 0, None)]
    assert airflow.logins == 1


def test_a_wrong_password_is_told(airflow: FakeAirflow):
    """A login that is not accepted ends in a sentence without the password."""
    with pytest.raises(AirflowRefused, match="does not accept the login") as caught:
        client(airflow, "wrong-one").runs("orders")
    assert "wrong-one" not in str(caught.value)


def test_the_password_is_not_shown(airflow: FakeAirflow):
    """Printing the client does not print the password."""
    assert "right" not in repr(client(airflow))


def test_runs_are_started_and_failed(airflow: FakeAirflow):
    """Trigger, pause and fail send what Airflow expects."""
    connected = client(airflow)
    connected.pause("orders", paused=False)
    connected.trigger("orders", "mine")
    connected.fail_run("orders", "mine")
    assert airflow.bodies == [
        {"is_paused": False},
        {"dag_run_id": "mine", "logical_date": None, "conf": {}},
        {"state": "failed"},
    ]


def test_a_dag_that_does_not_load_is_explained(airflow: FakeAirflow):
    """When a DAG does not appear, the import errors are shown."""
    client(airflow).wait_for_dag("orders", seconds=0)
    with pytest.raises(AirflowRefused, match="did not appear") as caught:
        client(airflow).wait_for_dag("others", seconds=0)
    assert caught.value.remedy == "orders.py: SyntaxError"


def test_a_refusal_is_told(airflow: FakeAirflow):
    """An error of Airflow is passed on with the request and the answer."""
    with pytest.raises(AirflowRefused, match="answered 404 to GET /dags/others/dagRuns: no such"):
        client(airflow).runs("others")
