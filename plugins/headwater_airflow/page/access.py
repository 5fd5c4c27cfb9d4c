"""Who may see what. The one module that knows Airflow's web server from the inside: these names are not a stable API."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagDetails
from airflow.api_fastapi.core_api.security import get_user, requires_access_dag, requires_access_view
from airflow.configuration import conf
from airflow.models.dag import DagModel
from fastapi import Depends

# Everybody who is logged in; the net below every route.
LOGGED_IN: Any = Depends(get_user)
# Who may use the menu of plugins.
MAY_SEE_PLUGINS: Any = Depends(requires_access_view(AccessView.PLUGINS))
# Who may read the DAG that the path names as {dag_id}.
MAY_READ_DAG: Any = Depends(requires_access_dag("GET"))


# No team may be called so: nobody is in it but who may see every team's DAGs.
_NOBODYS = "?"


def may_read(user: Any, dag_id: str) -> bool:
    """Whether a user may read a DAG, asked as Airflow's own routes ask: with the team that owns it.

    Where there are teams, a DAG that Airflow does not know (yet) is nobody's: it has no team that could be asked for.
    """
    team = DagModel.get_team_name(dag_id)
    if team is None and _has_teams() and DagModel.get_dagmodel(dag_id) is None:
        team = _NOBODYS
    details = DagDetails(id=dag_id, team_name=team)
    return bool(get_auth_manager().is_authorized_dag(method="GET", details=details, user=user))


def _has_teams() -> bool:
    return bool(conf.getboolean("core", "multi_team", fallback=False))
