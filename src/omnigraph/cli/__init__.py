"""The command line. One file per command family; `main` starts it, `output` is the only place that prints."""
