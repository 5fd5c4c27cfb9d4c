"""The exercises about streaming tables: a bench to run them on, and the checks of their answers. See docs/exercises/README.md.

Decision 0180.
"""

from headwater_exercises.checks import check
from headwater_exercises.workbench import BatchMeasures, Workbench

__all__ = ["BatchMeasures", "Workbench", "check"]
