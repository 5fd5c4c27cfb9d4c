"""SQL text in which names of the pipeline's datasets stand for the datasets.

Spark's own parser finds the names and says where in the text they are; each is replaced there by a temporary view
over the dataset's frame. Nothing is registered in a catalog.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.errors import ParseException

from headwater.errors import ActionInDefinition
from headwater_spark.facade.plan_walk import class_name, items, pair_of, plan_nodes, unresolved_relations

if TYPE_CHECKING:
    from headwater_spark.facade.pipeline_session import PipelineSession

_VARIABLE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")


class SqlText:
    """Rewrites SQL for one facade."""

    def __init__(self, session: PipelineSession, configuration: Mapping[str, str]) -> None:
        self._session = session
        self._configuration = configuration
        self._numbers = itertools.count(1)

    def rewrite(self, text: str, is_known: Callable[[list[str]], bool]) -> str:
        """Return ``text`` with ``${key}`` filled in and every known name replaced; what does not parse is left alone."""
        text = _VARIABLE.sub(lambda match: self._configuration.get(match[1], match[0]), text)
        try:
            plan = self._session._jsparkSession.sessionState().sqlParser().parsePlan(text)  # noqa: SLF001
        except ParseException:
            return text  # Spark's own call raises it again, with its context
        self._refuse_commands(plan, text)
        withs = [node for node in plan_nodes(plan) if class_name(node).endswith(".UnresolvedWith")]
        ctes = {pair_of(relation)[0] for node in withs for relation in items(node.cteRelations())}
        found = [
            relation
            for relation in unresolved_relations(plan)
            if not (len(relation[0]) == 1 and relation[0][0] in ctes)
        ]
        for parts, streaming, start, stop in sorted(found, key=lambda relation: -relation[2]):
            if is_known(parts):
                view = self._view(".".join(parts), streaming)
                text = text[:start] + _replace_name(text[start : stop + 1], parts, view) + text[stop + 1 :]
        return text

    def _view(self, name: str, streaming: bool) -> str:
        view = f"headwater_read_{next(self._numbers)}"
        frame = self._session.readStream.table(name) if streaming else self._session.read.table(name)
        frame.createOrReplaceTempView(view)
        return view

    def _refuse_commands(self, plan: object, text: str) -> None:
        kind = class_name(plan).rpartition(".")[2]
        command = self._session.sparkContext._jvm.java.lang.Class.forName(  # type: ignore[union-attr]  # noqa: SLF001
            "org.apache.spark.sql.catalyst.plans.logical.Command"
        )
        if command.isInstance(plan) and kind not in ("SetCommand", "SetNamespaceCommand"):
            raise ActionInDefinition(
                f"spark.sql runs a command here: {text.strip().splitlines()[0][:80]}",
                remedy="Declare tables with @dp.table and dp.create_streaming_table; a source only describes queries.",
            )


def _replace_name(span: str, parts: list[str], view: str) -> str:
    dotted = r"\s*\.\s*".join(f"`?{re.escape(part)}`?" for part in parts)
    return re.sub(dotted, view, span, count=1, flags=re.IGNORECASE)
