"""Storage: where a graph lives, its control files, its locks and its tables."""
