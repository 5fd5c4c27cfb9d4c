"""What is known of the rows of an operator that may differ, and the answers that one walk over a plan has given already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headwater_spark.views.plan_description import Node
from headwater_spark.views.recipes import Recipe


@dataclass(frozen=True)
class Answer:
    """A recipe, and the ids of the columns that its rows answer for."""

    recipe: Recipe
    known: frozenset[int]


class NotTraceable(Exception):
    """Rows can't be followed through an operator, for the columns that are wanted."""

    def __init__(self, operator: str, reason: str) -> None:
        super().__init__(reason)
        self.operator = operator
        self.reason = reason


@dataclass(frozen=True)
class Question:
    """What is asked of one operator of a plan.

    Args:
        leaf: whose changed rows are followed, None where all rows are asked for.
        wanted: the columns without which there is no answer; ``wished``: those that would make it smaller.
    """

    node: Node
    leaf: int | None
    wanted: frozenset[int]
    wished: frozenset[int]


@dataclass(frozen=True)
class GivenAnswers:
    """Each question is answered once: a join asks for its sides up to three times, and so does each join below it."""

    _given: dict[Question, Answer | NotTraceable] = field(default_factory=dict)

    def once(self, question: Question, answer: Callable[[], Answer]) -> Answer:
        """The answer to a question.

        Raises:
            NotTraceable: there is none.
        """
        given = self._given.get(question)
        if given is None:
            try:
                given = answer()
            except NotTraceable as none:
                given = NotTraceable(none.operator, none.reason)
            self._given[question] = given
        if isinstance(given, NotTraceable):
            raise NotTraceable(given.operator, given.reason)
        return given
