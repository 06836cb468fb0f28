"""`python -m omnigraph` is the `omnigraph` command."""

from __future__ import annotations

from omnigraph.cli.main import main

if __name__ == "__main__":
    main()
