"""Following edges: adjacency, searches, shortest paths and counts of paths."""
