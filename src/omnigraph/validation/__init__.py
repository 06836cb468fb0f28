"""Checks every rule that a schema states. Pure functions over Arrow data, shared by mutation, load and merge."""
