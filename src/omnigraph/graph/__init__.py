"""The public nouns: a graph, its branches, snapshots and commits; how a graph is created and opened."""
