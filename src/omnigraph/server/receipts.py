"""Receipts of requests whose verb has no idempotency key of its own: branches, tags and schema changes.

Mutations, loads and merges keep their receipts in the graph, in the commit itself. These verbs make no commit that could hold
one, so the server keeps the answer for as long as it runs, in a folder that its worker processes share.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import orjson

from omnigraph.errors import BadRequest
from omnigraph.server.operation import Answer, Call


@dataclass(frozen=True)
class Receipts:
    """The folder with one file per key."""

    folder: Path

    def earlier(self, call: Call) -> Answer | None:
        """The answer to an earlier request with the same key, or None. Another request under the same key is refused."""
        path = self._path(call)
        if path is None or not path.exists():
            return None
        kept = orjson.loads(path.read_bytes())
        if kept["request"] != call.fingerprint:
            raise BadRequest(f"idempotency key '{call.header('idempotency-key')}' was used for another request")
        return Answer(kept["answer"].encode())

    def keep(self, call: Call, answer: Answer) -> None:
        """Keep the answer to a request that has a key."""
        path = self._path(call)
        if path is None or answer.status != 200:
            return
        descriptor, name = tempfile.mkstemp(dir=self.folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps({"request": call.fingerprint, "answer": answer.content.decode()}))
        Path(name).replace(path)

    def _path(self, call: Call) -> Path | None:
        if call.idempotency_key is None or call.served is None:
            return None
        named = hashlib.sha256(f"{call.served.graph_id}\0{call.idempotency_key}".encode()).hexdigest()
        return self.folder / f"receipt-{named}.json"
