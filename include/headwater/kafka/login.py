"""How a pipeline connects to its Kafka brokers to read offsets: by the logins in its spec."""

from __future__ import annotations

import os
from collections.abc import Mapping

from headwater.definitions.broker_login import BrokerLogin
from headwater.errors import SourceUnreachable
from headwater.graph.pipeline_project import PipelineProject
from headwater.kafka.offsets import BrokerTopics, Connect

# The option of a read that says how Spark reaches the broker.
PROTOCOL = "kafka.security.protocol"


def broker_connection(project: PipelineProject, protocol: str = "") -> Connect:
    """What opens a broker by its servers, with the login that ``brokers`` has for any of them; ``protocol`` as for ``login_settings``."""

    def connect(servers: str) -> BrokerTopics:
        return BrokerTopics(servers, login=login_settings(project, servers, protocol))

    return connect


def login_settings(project: PipelineProject, servers: str, protocol: str = "") -> dict[str, str]:
    """The login that ``brokers`` has for any of the servers, as settings of the Kafka client; empty where it has none.

    ``protocol``: the one by which Spark reads from them, empty where its options do not say.

    Raises:
        SourceUnreachable: where an environment variable that should hold a secret is not set, or ``brokers`` has no login and the
            protocol needs one: such a broker answers nobody else, and a client would wait for it until its time is up.
    """
    logins = {address: login for key, login in project.spec.brokers.items() for address in _addresses(key)}
    matching = [logins[address] for address in _addresses(servers) if address in logins]
    if not matching and protocol.upper() not in ("", "PLAINTEXT"):
        raise SourceUnreachable(
            f"Kafka at {servers} requires a login ({protocol}), and brokers in pipeline.yml has none for it.",
            remedy="Add one under brokers, with the secret in an environment variable: docs/pipeline-yml.md.",
        )
    return client_settings(matching[0], servers) if matching else {}


def client_settings(
    login: BrokerLogin, servers: str, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """A login as settings of the Kafka client; they hold secrets.

    Raises:
        SourceUnreachable: where an environment variable that should hold a secret is not set.
    """

    def secret(variable: str | None) -> str | None:
        if variable is not None and variable not in environment:
            raise SourceUnreachable(
                f"Kafka at {servers} requires a login, and the environment variable {variable} is not set.",
                remedy=f"Set {variable} for the process that asks: the command line, or Airflow's scheduler and triggerer.",
            )
        return environment[variable] if variable is not None else None

    settings = {
        "security.protocol": login.protocol,
        "sasl.mechanisms": login.mechanism if login.protocol != "SSL" else None,
        "sasl.username": login.username,
        "sasl.password": secret(login.password_env),
        "ssl.ca.location": login.ca_file,
        "ssl.certificate.location": login.certificate_file,
        "ssl.key.location": login.key_file,
        "ssl.key.password": secret(login.key_password_env),
    }
    return {name: value for name, value in settings.items() if value is not None}


def _addresses(servers: str) -> list[str]:
    return [address.strip() for address in servers.split(",") if address.strip()]
