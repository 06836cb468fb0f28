"""Studio, the web application: its built files, its security headers, and its one-time key.
`scripts/build_studio.py` builds the files into `studio_files` beside this module; an installation without them serves a page
that
says so. The same document is served for all paths under `/g/`, which the page itself interprets.
"""

from __future__ import annotations

import gzip
import hmac
import secrets
from functools import lru_cache
from pathlib import Path
from threading import Lock

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

FILES = Path(__file__).parent / "studio_files"
INDEX = "index.html"
NONCE = "__NONCE__"

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>OmniGraph</title>
<p>This installation of OmniGraph has no Studio: the page was not built. Run <code>python scripts/build_studio.py</code> in a
checkout, or install a wheel. The HTTP API works; see <a href="/openapi.json">/openapi.json</a>.</p></html>
"""


def is_studio_path(path: str) -> bool:
    """Whether a path belongs to Studio; all other paths belong to the API."""
    return path in ("/", "/favicon.svg") or path.startswith(("/g/", "/assets/")) or path == "/g"


def is_built() -> bool:
    """Whether this installation has the page."""
    return (FILES / INDEX).is_file()


async def serve_studio(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request for the page or one of its files."""
    await _response(scope)(scope, receive, send)


def _response(scope: Scope) -> Response:
    path = scope["path"]
    if path.startswith("/assets/") or path == "/favicon.svg":
        return _file(path.removeprefix("/"), scope)
    if not is_built():
        return Response(_MISSING, 404, _security(""), "text/html; charset=utf-8")
    nonce = secrets.token_urlsafe(16)
    text = (FILES / INDEX).read_text(encoding="utf-8").replace(NONCE, nonce)
    return Response(text, 200, {**_security(nonce), "Cache-Control": "no-store"}, _TYPES[".html"])


def _file(name: str, scope: Scope) -> Response:
    """A file of the build. Its name contains a digest of its content, so browsers may cache it forever."""
    place = (FILES / name).resolve()
    media = _TYPES.get(place.suffix)
    if media is None or FILES.resolve() not in place.parents or not place.is_file():
        return Response("there is no such file", 404, _security(""), "text/plain; charset=utf-8")
    headers = {**_security(""), "Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    accepted = next((value for header, value in scope["headers"] if header == b"accept-encoding"), b"")
    if b"gzip" in accepted:
        return Response(_packed(place, place.stat().st_mtime_ns), 200, {**headers, "Content-Encoding": "gzip"}, media)
    return Response(place.read_bytes(), 200, headers, media)


@lru_cache(maxsize=64)
def _packed(place: Path, modified: int) -> bytes:
    """The compressed content of a file; cached by path and modification time."""
    return gzip.compress(place.read_bytes(), 9)


def _security(nonce: str) -> dict[str, str]:
    """Security headers: no requests to other hosts, no inline scripts, no frames."""
    style = f" 'nonce-{nonce}'" if nonce else ""
    rules = (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self'{style}",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
    return {
        "Content-Security-Policy": "; ".join(rules),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    }


class OneTimeKey:
    """A key that can be exchanged for the server's token once, by the browser that `omnigraph studio` opens."""

    def __init__(self, key: str | None) -> None:
        self._key = key
        self._lock = Lock()

    def is_taken(self, given: str) -> bool:
        """Whether the key is right; after a right key, every key is refused."""
        with self._lock:
            if self._key is None or not hmac.compare_digest(self._key.encode(), given.encode("utf-8", "replace")):
                return False
            self._key = None
            return True
