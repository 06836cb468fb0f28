"""How texts are analysed for full-text search, as options of Lance's INVERTED index.

They are all set when an index is built, and the scan of rows that no index covers analyses texts in the same way; so which
rows match never depends on the index.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TEXT_INDEX_OPTIONS: Mapping[str, str | int | bool] = MappingProxyType(
    {
        "base_tokenizer": "simple",
        "language": "English",
        "max_token_length": 40,
        "lower_case": True,
        "stem": True,
        "remove_stop_words": True,
        "ascii_folding": True,
        # Only phrases need positions, and there is no search for phrases.
        "with_position": False,
    }
)
