"""Storage: where a graph lies, its control files, its locks and its tables."""
