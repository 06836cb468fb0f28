"""Export: a snapshot as JSON lines or Parquet, Arrow or CSV, in one file or many."""
