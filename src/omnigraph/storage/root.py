"""Where a graph lies: a normalised URI and the options of its store."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from omnigraph.errors import BadRequest

# The alternative names of one option; the first is accepted by both Lance and obstore.
_NAMES = (
    ("aws_access_key_id", "access_key_id"),
    ("aws_secret_access_key", "secret_access_key"),
    ("aws_session_token", "session_token", "aws_token", "token"),
    ("aws_region", "region", "aws_default_region", "default_region"),
    ("aws_endpoint", "endpoint", "aws_endpoint_url", "endpoint_url", "aws_endpoint_url_s3"),
    ("allow_http", "aws_allow_http"),
    ("aws_virtual_hosted_style_request", "virtual_hosted_style_request"),
)
_CANONICAL = {alias: names[0] for names in _NAMES for alias in names}
_CREDENTIALS = {"aws_access_key_id", "aws_secret_access_key", "aws_session_token"}

# In order of precedence where several variables set one option.
_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT",
    "AWS_ALLOW_HTTP",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
)


def s3_options(given: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The options of an S3 root under their canonical names; given options override the environment."""
    options: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(value, str):
            raise BadRequest(f"storage option {name} must be text, not {type(value).__name__}")
        canonical = _CANONICAL.get(name.lower(), name.lower())
        if options.setdefault(canonical, value) != value:
            raise BadRequest(f"storage option {canonical} is given twice with different values; keep one")
    own_credentials = not _CREDENTIALS.isdisjoint(options)
    for variable in _VARIABLES:
        name = _CANONICAL[variable.lower()]
        # Credentials belong together: the key of one source does not fit the session token of another.
        if environ.get(variable) and not (own_credentials and name in _CREDENTIALS):
            options.setdefault(name, environ[variable])
    if options.get("aws_endpoint", "").startswith("http://"):
        options.setdefault("allow_http", "true")
    return options


_SCHEMES = "a local path, file://… or s3://bucket/prefix"

# obstore names its temporary files like this on disk, and hides them from listings.
_HALF_WRITTEN = re.compile(r"#\d+$")


def relative(path: str) -> str:
    """Check a path below the root: no empty, `.` or `..` segment, so that nothing outside a graph is reached."""
    if any(segment in ("", ".", "..") for segment in path.split("/")):
        raise BadRequest(f"{path!r} is not a path below a graph; give segments joined by single slashes")
    if _HALF_WRITTEN.search(path):
        raise BadRequest(f"{path!r} can not be stored: a name may not end in # and a number; use another one")
    return path


@dataclass(frozen=True)
class Root:
    """The absolute URI of a graph: `/real/path`, `s3://bucket/prefix` or, for control files only, `memory://name`."""

    uri: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # may hold secrets: never printed

    @classmethod
    def parse(
        cls,
        uri: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Root:
        """Parse a URI as a user writes it; AWS_* variables supply options that `storage_options` lacks."""
        text = os.fspath(uri)
        scheme, separator, rest = text.partition("://")
        if separator and scheme == "s3":
            return cls(_s3_uri(text, rest), tuple(sorted(s3_options(storage_options or {}, environ).items())))
        if storage_options:
            raise BadRequest(f"storage options are for s3:// only; {text!r} is not on S3")
        if separator and scheme == "memory":
            return cls(text)
        if separator and scheme != "file":
            raise BadRequest(f"can not open {text!r}: the scheme {scheme}:// is not supported; use {_SCHEMES}")
        return cls(_local_path(text, unquote(_file_path(text, rest)) if separator else text))

    @property
    def scheme(self) -> str:
        """`file`, `s3` or `memory`."""
        scheme, separator, _ = self.uri.partition("://")
        return scheme if separator else "file"

    @property
    def is_local(self) -> bool:
        """Whether the graph is on this machine's file system."""
        return self.scheme == "file"

    @property
    def bucket(self) -> str:
        """The S3 bucket."""
        return self._authority_and_prefix()[0]

    @property
    def prefix(self) -> str:
        """The prefix of every path in the store: the key prefix on S3, on disk the absolute path without leading slash."""
        if self.is_local:
            return self.uri.strip("/")
        return self._authority_and_prefix()[1] if self.scheme == "s3" else ""

    @property
    def storage_options(self) -> dict[str, str]:
        """The options under the names that Lance and the object store accept."""
        return dict(self.options)

    def lance_uri(self, path: str) -> str:
        """The absolute URI of a table below this root."""
        if self.scheme == "memory":
            raise BadRequest("memory:// keeps control files only; a graph needs a local path or s3://bucket/prefix")
        return f"{self.uri.rstrip('/')}/{relative(path)}"

    def local_path(self, path: str) -> Path:
        """The file of a path below a local root."""
        return _file_below(self.uri, path)

    def _authority_and_prefix(self) -> tuple[str, str]:
        authority, _, prefix = self.uri.partition("://")[2].partition("/")
        return authority, prefix


@lru_cache(maxsize=1024)
def _file_below(root: str, path: str) -> Path:
    """The path of a file below a local root. Cached, because every query asks for the same few files."""
    return Path(root) / relative(path)


def _s3_uri(text: str, rest: str) -> str:
    """`s3://bucket/prefix` without a trailing slash."""
    bucket, _, prefix = rest.rstrip("/").partition("/")
    if not bucket:
        raise BadRequest(f"{text!r} names no bucket; write s3://bucket/prefix")
    if any(mark in rest for mark in "?#"):
        raise BadRequest(f"{text!r}: '?' and '#' can not be part of an s3:// URI; give options as storage options")
    return f"s3://{bucket}/{relative(prefix)}" if prefix else f"s3://{bucket}"


def _file_path(text: str, rest: str) -> str:
    """The path of a `file://` URI; only local files are supported."""
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        raise BadRequest(f"{text!r}: write file:///absolute/path; a file:// URI can not name another host")
    return slash + path


def _local_path(text: str, path: str) -> str:
    """The absolute real path: a branch that Lance made through a relative path is unreadable from elsewhere."""
    if not path:
        raise BadRequest(f"the graph URI is empty; give {_SCHEMES}")
    if any(character < " " or "\ud800" <= character <= "\udfff" for character in path):
        raise BadRequest(f"{text!r} is not a usable path: it contains control characters or bytes that are not UTF-8")
    real = os.path.realpath(path)
    if "?" in real:
        # Lance reads it as the start of a URL query and would put a table's branches beside the graph.
        raise BadRequest(f"{text!r} is not a usable path: it contains '?'; choose a folder without it")
    return real
