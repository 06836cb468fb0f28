"""Bulk load and ingest: many rows, one commit. Pure task functions over small descriptions; a runner only schedules them."""
