"""The command line's entry: ``python -m headwater VERB``."""

from __future__ import annotations

import sys

from headwater.commands.command_line import main

if __name__ == "__main__":
    sys.exit(main())
