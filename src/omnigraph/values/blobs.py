"""Blob values in the form that writers give: `base64:…` text contains the bytes, any other text is a URI."""

from __future__ import annotations

import base64
import binascii

import lance
import pyarrow as pa

from omnigraph.errors import BadRequest, ExternalBlobDenied, ResourceLimit
from omnigraph.language.json_values import BASE64
from omnigraph.language.literals import PlainValue
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.storage.external import permitted_uri, require_source

Entity = NodeType | EdgeType

LONGEST_URI = 65_536


def blob_value(entity: Entity, name: str, given: PlainValue | bytes, allowed: tuple[str, ...]) -> pa.Array | None:
    """A one-row blob column; None for null. `allowed`: the URI prefixes of external values."""
    if given is None:
        return None
    if isinstance(given, bytes):
        return lance.blob_array([given])
    text = str(given)
    if not text.startswith(BASE64):
        return _external(entity, name, text, allowed)
    try:
        data = base64.b64decode(text.removeprefix(BASE64), validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest(f"{entity.name}.{name}: the text behind `{BASE64}` is not base64") from None
    return lance.blob_array([data])


def _external(entity: Entity, name: str, uri: str, allowed: tuple[str, ...]) -> pa.Array:
    if len(uri.encode()) > LONGEST_URI:
        raise ResourceLimit(
            f"{entity.name}.{name}: an external blob URI has at most {LONGEST_URI} bytes",
            resource="external Blob URI bytes",
            limit=LONGEST_URI,
            actual=len(uri.encode()),
        )
    permitted = permitted_uri(uri, allowed)
    if permitted is None:
        raise ExternalBlobDenied(
            f"{entity.name}.{name}: external blobs are not allowed from {uri[:80]!r}; give the bytes as `{BASE64}…`, "
            "or open the graph with `external_blobs` that allow it, and write the URI in its plain form",
            uri=uri,
        )
    require_source(permitted, f"{entity.name}.{name}")
    return lance.blob_array([lance.Blob.from_uri(permitted)])
