"""The command line. One file per command family; `main` is the entry point, and only `output` prints."""
