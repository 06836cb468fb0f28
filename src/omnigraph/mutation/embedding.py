"""Vectors that are computed from a text: an insert that gives the text and not the vector."""

from __future__ import annotations

from omnigraph.errors import EmbeddingError
from omnigraph.mutation.staging import Entity


def embed_missing(entity: Entity, row: dict[str, object]) -> None:
    """Fill in the `@embed` vectors that a row does not give although it gives their source."""
    for name, declared in entity.properties.items():
        if declared.embed is None or row.get(name) is not None or row.get(declared.embed.source) is None:
            continue
        if declared.type.nullable:
            continue
        raise EmbeddingError(
            f"{entity.name}.{name} is embedded from '{declared.embed.source}', but no embedding provider is configured; "
            "give the vector, or configure a provider",
            provider="none",
        )
