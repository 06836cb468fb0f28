"""Benchmarks: `python -m bench` measures everything and keeps the tables in RESULTS.md."""
