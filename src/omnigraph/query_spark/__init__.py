"""The Spark engine for queries: a plan becomes data frames; expressions are evaluated by the local engine's code."""
