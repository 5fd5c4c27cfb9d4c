"""The seed of what tests draw at random: always the same in `make test`, another in each `make soak`."""

from __future__ import annotations

import os

# make soak gives one, and prints it: to run the same again, give it once more.
SOAK = "HEADWATER_SEED" in os.environ
SEED = int(os.environ.get("HEADWATER_SEED") or 22)
