"""Graphs as code: graphs, stored queries, policies and providers that one folder declares, and their applied state."""
