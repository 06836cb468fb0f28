"""External blobs: where a URI leads, checked and resolved by one strict parser.

A stored URI is later opened by other parsers, which may remove tabs, turn backslashes into slashes and follow `..`.
So a URI that any parser might rewrite is refused here: the remaining ones mean the same to all parsers.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

import obstore
from obstore.exceptions import BaseError

from omnigraph.errors import BadRequest, ExternalBlobSource, OmnigraphError
from omnigraph.storage.objects import s3_client
from omnigraph.storage.root import Root

_URI = re.compile(r"(?P<scheme>[a-z][a-z0-9]*)://(?P<host>[a-z0-9.-]*)(?P<path>(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*)/?")
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Place:
    """The target of a URI: its scheme and host, and the decoded segments of its path with symbolic links resolved."""

    scheme: str
    host: str
    segments: tuple[str, ...]

    def lies_under(self, base: Place) -> bool:
        """Whether this place is the base or lies below it."""
        same = (self.scheme, self.host) == (base.scheme, base.host)
        return same and self.segments[: len(base.segments)] == base.segments

    @property
    def local_path(self) -> str:
        return "/" + "/".join(self.segments)


def parse_external(uri: str) -> Place | None:
    """The place of a URI; None when it is not a URI, or when another parser could read it differently."""
    found = _URI.fullmatch(uri)
    if found is None or _PERCENT.search(uri) or (found["scheme"] == "file") == bool(found["host"]):
        return None
    segments = []
    for written in found["path"].split("/")[1:]:
        try:
            segment = unquote_to_bytes(written).decode()
        except UnicodeDecodeError:
            return None
        if segment in (".", "..") or any(ord(char) < 32 or char in "/\\\x7f" for char in segment):
            return None
        segments.append(segment)
    if found["scheme"] == "file":
        real = os.path.realpath("/" + "/".join(segments))
        segments = [segment for segment in real.split("/") if segment]
    return Place(found["scheme"], found["host"], tuple(segments))


def allowed_bases(given: object) -> tuple[str, ...]:
    """What `external_blobs` holds; raises when it is no list of URIs, because such a list would allow nothing without a word."""
    if not isinstance(given, list | tuple | set | frozenset):
        raise BadRequest(
            f"external_blobs is a list of URI prefixes such as ['file:///data/'], not {str(given)[:200]!r}"
        )
    for base in given:
        if not isinstance(base, str) or parse_external(base) is None:
            raise BadRequest(
                f"external_blobs: {str(base)[:200]!r} is no URI in its plain form, such as file:///data/ or "
                "s3://bucket/prefix/; of a local folder it is `Path(folder).absolute().as_uri()`"
            )
    return tuple(given)


def permitted_uri(uri: str, bases: tuple[str, ...]) -> str | None:
    """The URI to store for the given URI, with symbolic links resolved; None when it does not lie under a base."""
    place = None if uri.endswith("/") else parse_external(uri)
    if place is None or not any(place.lies_under(base) for base in map(parse_external, bases) if base is not None):
        return None
    if place.scheme != "file":
        return uri
    written = unquote_to_bytes(uri.removeprefix("file://")).decode()
    return uri if written == place.local_path else Path(place.local_path).as_uri()


def require_source(uri: str, what: str) -> None:
    """Raise if the target of a permitted URI does not exist; only files and S3 are checked. `what`: the property."""
    reason = None
    if uri.startswith("file://"):
        place = parse_external(uri)
        assert place is not None
        reason = _unreadable(place.local_path)
    elif uri.startswith("s3://"):
        reason = _missing_on_s3(uri)
    if reason is not None:
        raise ExternalBlobSource(
            f"{what}: can not refer to {uri[:200]!r}: {reason}; write the source first, or give the bytes as `base64:…`",
            uri=uri,
            reason=reason,
        )


def _unreadable(path: str) -> str | None:
    """Why a local file can not be read; None when it can."""
    try:
        if not Path(path).is_file():
            return "there is no such file"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None if os.access(path, os.R_OK) else "it can not be read"


def _missing_on_s3(uri: str) -> str | None:
    try:
        root = Root.parse(uri)
        obstore.head(s3_client(root), root.prefix)
    except FileNotFoundError:
        return "there is no such object"
    except (BaseError, OmnigraphError) as error:
        return str(error).partition("\n")[0]
    return None
