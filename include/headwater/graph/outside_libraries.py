"""Libraries that do not lie below the pipeline's folder."""

from __future__ import annotations

from headwater.errors import InvalidSpec
from headwater.storage.place import Place

# Where the platform keeps the files of a workspace.
_OF_WORKSPACE = ("/Workspace/", "/Repos/", "/Users/", "/Shared/")


def leads_out(pattern: str, spec_file: Place) -> InvalidSpec:
    """The error for a library that is absolute, or leads upwards."""
    remedy = "Keep sources below the folder of pipeline.yml."
    if pattern.startswith(_OF_WORKSPACE):
        remedy = (
            "It is an address of the platform's workspace: copy its folder (`databricks workspace export-dir`) beside the spec, "
            f"and name it from there, as transformations/{pattern.rstrip('*/').rpartition('/')[2]}."
        )
    return InvalidSpec(
        f"The library {pattern!r} leads out of the pipeline's folder.", where=spec_file, remedy=remedy
    )
