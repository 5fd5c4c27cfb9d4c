"""A real Kafka broker of one node, without a container: for the demo and for tests.

with KafkaBroker(folder) as broker:
broker.create_topic("orders", partitions=2)
... broker.bootstrap_servers ...
"""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from headwater.errors import HeadwaterError
from headwater.runtime.jars import ensure_jars
from headwater.runtime.java import java_environment
from headwater.runtime.ports import LOOPBACK, free_port, require_free
from headwater_demo.processes import Child, start_child

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

PORT_SETTING = "HEADWATER_KAFKA_PORT"

# A broker this small starts in half the time and memory with the quick compiler alone.
_JVM_FLAGS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dkafka.logs.dir=logs")
_START_SECONDS = 60

# The timeouts let a broker that was killed come back in 3 seconds: it would else wait for its own
# old session to expire.
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://127.0.0.1:{controller_port}{sasl_listener}
advertised.listeners=PLAINTEXT://{advertised}{sasl_listener}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT
log.dirs={log_dirs}
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.enable=false
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
controller.quorum.election.timeout.ms=200
controller.quorum.election.backoff.max.ms=100
controller.quorum.fetch.timeout.ms=1000
"""

# A second listener with a login. Names and passwords are in this file only, which its owner alone can read.
_LOGIN = """\
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {users};
"""

_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c: %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
logger.server.name = kafka.server
logger.server.level = info
"""


class BrokerFailed(HeadwaterError):
    """The Kafka broker did not start, or stopped by itself."""

    condition = "KAFKA_BROKER_FAILED"


@dataclass
class KafkaBroker:
    """A broker with its data in one folder; started again on the same folder, it has its topics back.

    Attributes:
        folder: holds the data, the settings and the log (``broker.log``).
        port: for clients; 0 takes a free one.
        host: the address to listen on.
        advertised: the address that clients are given, if it is not ``host:port``.
        environment: variables for the process, over those of this one.
        users: names and passwords; where there are any, ``login_servers`` is a second address that asks for one of
            them (SASL PLAIN, no TLS).

    """

    folder: Path
    port: int = 0
    host: str = LOOPBACK
    advertised: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    login_port: int = 0
    _child: Child | None = None

    def __post_init__(self) -> None:
        self.folder = Path(self.folder).resolve()
        self.port = self.port or free_port()
        if self.users:
            self.login_port = self.login_port or free_port()

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, as ``host:port``."""
        return self.advertised or f"{self.host}:{self.port}"

    @property
    def login_servers(self) -> str:
        """The address for clients that log in, as ``host:port``; empty where there are no users."""
        return f"{self.host}:{self.login_port}" if self.users else ""

    @property
    def log(self) -> Path:
        """What the broker wrote."""
        return self.folder / "broker.log"

    @property
    def is_running(self) -> bool:
        """Whether the process is alive."""
        return self._child is not None and self._child.is_running

    @property
    def pid(self) -> int | None:
        """The id of the process, once started."""
        return self._child.process.pid if self._child else None

    def start(self) -> Self:
        """Start the broker, formatting the folder if it is new, and return when it answers.

        Raises:
            PortTaken: if something listens on the port.
            BrokerFailed: if it does not answer within a minute.

        """
        require_free(self.port, "the Kafka broker", PORT_SETTING)
        self._write_settings()
        self._format()
        self._child = start_child(
            "kafka broker",
            self._java("kafka.Kafka", str(self._settings)),
            self.log,
            env=self._environment(),
            cwd=self.folder,
        )
        self._wait_until_ready()
        return self

    def stop(self) -> None:
        """End the broker cleanly."""
        if self._child:
            self._child.stop(grace_seconds=15)

    def kill(self) -> None:
        """End the broker as a crash would."""
        if self._child:
            self._child.kill()

    def wait(self) -> None:
        """Return when the broker ends.

        Raises:
            BrokerFailed: as it does so only when something is wrong, or another process ended it.

        """
        assert self._child is not None
        code = self._child.process.wait()
        raise BrokerFailed(f"the Kafka broker ended by itself (exit code {code})", where=self.log)

    def restart(self) -> None:
        """Stop the broker, if it runs, and start it on the same port and data."""
        self.stop()
        self.start()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic, unless it is there already."""
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        admin = self._admin()
        if name not in admin.list_topics(timeout=10).topics:
            admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
            self._wait_for(lambda: bool(admin.list_topics(name, timeout=2).topics[name].partitions))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _settings(self) -> Path:
        return self.folder / "server.properties"

    def _write_settings(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = _SETTINGS.format(
            host=self.host,
            port=self.port,
            controller_port=free_port(),
            advertised=self.bootstrap_servers,
            log_dirs=self.folder / "data",
            sasl_listener=f",LOGIN://{self.login_servers}" if self.users else "",
        )
        if self.users:
            users = " ".join(f'user_{name}="{password}"' for name, password in self.users.items())
            settings += _LOGIN.format(users=users)
        self._settings.touch(mode=0o600)
        self._settings.write_text(settings)
        (self.folder / "log4j2.properties").write_text(_LOGGING)

    def _format(self) -> None:
        if (self.folder / "data" / "meta.properties").exists():
            return
        cluster = uuid.uuid4().hex[:22]
        answer = subprocess.run(
            self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings)),
            env=self._environment(),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=_START_SECONDS,
            check=False,
        )
        if answer.returncode != 0:
            raise BrokerFailed(
                f"the broker's folder could not be prepared: {answer.stderr.strip()[-400:]}",
                where=self.folder,
            )

    def _java(self, main_class: str, *arguments: str) -> list[str]:
        class_path = os.pathsep.join(str(jar) for jar in ensure_jars("kafka_broker"))
        java = f"{java_environment()['JAVA_HOME']}/bin/java"
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return [java, *_JVM_FLAGS, logging, "-cp", class_path, main_class, *arguments]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment, **java_environment()}

    def _admin(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        # Level 0 keeps the client's "connection refused" lines of the start off the terminal.
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})

    def _wait_until_ready(self) -> None:
        from confluent_kafka import KafkaException

        admin: Any = self._admin()

        def answers() -> bool:
            if not self.is_running:
                raise BrokerFailed(
                    "the Kafka broker stopped while starting", where=self.log, remedy="see the end of its log"
                )
            try:
                return bool(admin.list_topics(timeout=1).brokers)
            except KafkaException:
                return False

        self._wait_for(answers)

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise BrokerFailed(
                    f"the Kafka broker did not answer within {_START_SECONDS} seconds",
                    where=self.log,
                    remedy="see the end of its log; on a machine this busy, try again",
                )
            time.sleep(0.05)
