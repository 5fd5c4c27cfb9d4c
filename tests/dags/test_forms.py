"""What every form of a pipeline's DAGs does with what nobody reads."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException

from headwater_airflow.dag import PipelineBackfillDag, PipelineDag, PipelineMaintenanceDag, PipelineRepairDag


@pytest.mark.parametrize(
    ("dag_of", "task_id", "conf", "nearest"),
    [
        (PipelineDag, "update", {"tabels": ["gold"]}, "tables"),
        (PipelineBackfillDag, "backfill", {"tabels": ["gold"], "dry_run": False}, "tables"),
        (PipelineMaintenanceDag, "plan", {"dryrun": True}, "dry_run"),
        (PipelineMaintenanceDag, "maintain", {"dryrun": True}, "dry_run"),
        (PipelineRepairDag, "plan", {"flwo": "gold"}, "flow"),
        (PipelineRepairDag, "repair", {"flwo": "gold", "dry_run": False}, "flow"),
    ],
)
def test_a_field_that_the_form_does_not_have_starts_nothing(
    medallion, driver, dag_of, task_id, conf, nearest
):
    """Airflow takes any: a misspelled name of a table, a flow or a dry run would be a run with the form's default."""
    dag = dag_of("medallion")
    context = {
        "ti": SimpleNamespace(dag_id=dag.dag_id, run_id="r", try_number=1, max_tries=0),
        "dag_run": SimpleNamespace(conf=conf, run_type="manual", start_date=None),
        "params": {**{name: param.value for name, param in dag.params.items()}, **conf},
    }
    with pytest.raises(AirflowFailException, match=f"no field .*\n.*Did you mean '{nearest}'"):
        dag.get_task(task_id).execute(context)
    assert driver.calls == []
