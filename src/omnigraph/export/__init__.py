"""Export: a snapshot as JSON lines or Parquet, in one file or many."""
