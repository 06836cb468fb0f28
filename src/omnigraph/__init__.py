"""OmniGraph: a typed property graph over Lance tables, with branches, commits and merges."""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__"]
