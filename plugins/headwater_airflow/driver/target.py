"""Where the connection of a task sends its driver, and what can't be sent there.

Decision 0187.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater.runtime.conditions import UnsupportedDeployment
from headwater.runtime.masters import is_local

CLIENT, CLUSTER = "client", "cluster"


@dataclass(frozen=True)
class Target:
    """A master as Spark spells it, and where the driver runs: ``client``, beside the task, or ``cluster``."""

    master: str
    deploy_mode: str = CLIENT

    @property
    def local(self) -> bool:
        """Whether everything runs in the driver's process."""
        return is_local(self.master)

    @property
    def in_cluster(self) -> bool:
        """Whether the driver runs on a machine that the cluster chooses."""
        return self.deploy_mode == CLUSTER

    @property
    def managed(self) -> bool:
        """Whether YARN or Kubernetes starts processes: the provider then writes the driver's variables on the command line."""
        return self.master.startswith(("yarn", "k8s"))

    @property
    def kubernetes(self) -> bool:
        """Whether executors are pods."""
        return self.master.startswith("k8s")

    def refuse_unsupported(self, where: object) -> None:
        """Raise UnsupportedDeployment, with the reason, where no driver of ours can run like this."""
        if self.in_cluster and not self.managed:
            raise UnsupportedDeployment(_NO_CLUSTER_MODE, where=where, remedy=_BESIDE)


_NO_CLUSTER_MODE = "Spark has no cluster mode for Python programs on a standalone cluster: the driver can't run on a worker of spark://."
_BESIDE = (
    "Take deploy-mode out of the connection's extra, or set it to client: the driver then runs beside the task, and its "
    "executors on the cluster."
)


def target_of(connection: Any, deploy_mode: str | None = None) -> Target:
    """The target of a connection, by the same rules as the provider's hook.

    Args:
        connection: of type spark, or of the type that the master's scheme has.
        deploy_mode: the operator's own, which wins over the connection's.
    """
    host = connection.host or ""
    whole = connection.conn_type == "spark" and host and ("://" in host or not connection.port)
    master = host if whole else f"{connection.conn_type}://{host}"
    if connection.port:
        master = f"{master}:{connection.port}"
    chosen = deploy_mode or (connection.extra_dejson or {}).get("deploy-mode") or CLIENT
    return Target(master, str(chosen))
