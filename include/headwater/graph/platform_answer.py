"""What the platform's programs print of a pipeline: its settings, wrapped in the state of its runs.

``databricks pipelines get ID`` has the settings under ``spec``. Decision 0161.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.graph.lakeflow_spec import SettingNote

SPEC = "spec"
_ASK = "Ask for one: `databricks pipelines get <pipeline_id> -o json` prints its settings under `spec`."
# Keys that only the state of a pipeline has; settings have none of them.
_OF_STATE = ("pipeline_id", "latest_updates", "creator_user_name", "run_as_user_name", "health", "state")


def is_answer(data: Mapping[str, Any]) -> bool:
    """Whether a file is what ``pipelines get`` prints."""
    return isinstance(data.get(SPEC), Mapping) and any(key in data for key in _OF_STATE)


def answer_notes(data: Mapping[str, Any]) -> tuple[SettingNote, ...]:
    """What becomes of the keys around the settings, as one sentence for all."""
    around = [key for key in data if key != SPEC]
    return (SettingNote(", ".join(around), "they tell of the pipeline's runs on the platform"),)


def not_settings(data: Any) -> tuple[str, str] | None:
    """What a file is that holds no settings, and what to do; None where it may hold some.

    Args:
        data: what the file holds, in whatever form.
    """
    if isinstance(data, list):
        return ("is a list of pipelines", _ASK) if _all_have("pipeline_id", data) else None
    if not isinstance(data, Mapping):
        return None
    if _all_have("pipeline_id", data.get("statuses")):
        return "is a list of pipelines", _ASK
    settings = data.get("settings")
    of_job = settings if isinstance(settings, Mapping) else data
    if "job_id" in data or _all_have("task_key", of_job.get("tasks")):
        return (
            "is a job, and not a pipeline",
            "Its tasks name pipelines by `pipeline_id`: `databricks pipelines get <pipeline_id> -o json` prints the settings of "
            "one. The job's schedule is `airflow: {schedule: ...}` of each.",
        )
    if "pipeline_id" in data and SPEC not in data:
        return "tells of a pipeline's state, and has no settings", _ASK
    return None


def _all_have(key: str, values: Any) -> bool:
    """Whether a value is a list of maps, each with this key."""
    return (
        isinstance(values, list)
        and bool(values)
        and all(isinstance(one, Mapping) and key in one for one in values)
    )
