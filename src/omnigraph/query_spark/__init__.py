"""The Spark engine for queries: a plan becomes data frames, and expressions are computed by the local engine's own code."""
