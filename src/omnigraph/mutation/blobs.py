"""Blob values as mutations give them: `base64:…` text is the bytes themselves, anything else is a URI."""

from __future__ import annotations

import base64
import binascii

import lance
import pyarrow as pa

from omnigraph.errors import BadRequest, ExternalBlobDenied, ResourceLimit
from omnigraph.language.literals import PlainValue
from omnigraph.mutation.staging import Entity

BASE64 = "base64:"
LONGEST_URI = 65_536


def blob_value(entity: Entity, name: str, given: PlainValue) -> pa.Array | None:
    """A one-row blob column, or None for null."""
    if given is None:
        return None
    text = str(given)
    if not text.startswith(BASE64):
        return _external(entity, name, text)
    try:
        data = base64.b64decode(text.removeprefix(BASE64), validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest(f"{entity.name}.{name}: the text behind `{BASE64}` is not base64") from None
    return lance.blob_array([data])


def _external(entity: Entity, name: str, uri: str) -> pa.Array:
    if len(uri.encode()) > LONGEST_URI:
        raise ResourceLimit(
            f"{entity.name}.{name}: an external blob URI has at most {LONGEST_URI} bytes",
            resource="external Blob URI bytes",
            limit=LONGEST_URI,
            actual=len(uri.encode()),
        )
    raise ExternalBlobDenied(
        f"{entity.name}.{name}: external blobs are not allowed here ({uri[:80]}); give the bytes as `{BASE64}…`", uri=uri
    )
