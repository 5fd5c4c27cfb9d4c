"""What runs inside a Spark application: loading sources, resolving the graph, executing flows."""
