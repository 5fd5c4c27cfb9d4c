"""From definitions to a plan: registry, dataflow graph, validation, manifest, update plan."""
