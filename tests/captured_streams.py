"""Log handlers that were set up while pytest captured output hold a stream that pytest closes before the process ends.

Airflow sets up such handlers where it is imported, for the root logger and at level INFO. What is logged while the interpreter
shuts down (py4j closes its connections then) would go to a closed file, which `logging` reports with a traceback.
"""

from __future__ import annotations

import logging
import sys


def forget_captured_streams() -> None:
    """Take away the handlers that write to a stream which is neither the process's own nor a file's."""
    own = (sys.__stdout__, sys.__stderr__)
    loggers = [logging.root, *logging.Logger.manager.loggerDict.values()]
    for logger in loggers:
        for handler in list(getattr(logger, "handlers", ())):
            is_stream = isinstance(handler, logging.StreamHandler) and not isinstance(
                handler, logging.FileHandler
            )
            if is_stream and handler.stream not in own:
                logger.removeHandler(handler)  # type: ignore[union-attr]
