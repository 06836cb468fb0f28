"""The one evaluator of every rule a schema states. Pure functions over Arrow data, shared by mutation, load and merge."""
