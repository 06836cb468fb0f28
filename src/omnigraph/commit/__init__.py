"""Commits: `__manifest` and its publisher, lineage, the commit protocol, recovery, the on-disk format."""
