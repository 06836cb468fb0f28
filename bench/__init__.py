"""Benchmarks: `python -m bench` measures everything and keeps the table in RESULTS.md."""
