"""The origin of a declaration's files: a local folder, or a request to the server of the cluster."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from omnigraph.cluster.diagnostics import Findings, Stop
from omnigraph.errors import BadRequest
from omnigraph.storage.root import Root

FILE = "cluster.yaml"


class Source(Protocol):
    """The files of one declaration, by their names in cluster.yaml."""

    @property
    def shown(self) -> str:
        """The name of the folder, for messages."""

    def config_text(self, findings: Findings) -> str:
        """The text of cluster.yaml; raises Stop when there is none."""

    def storage(self, given: str | None) -> Root:
        """The storage root for the declaration's `storage` value `given`; raises BadRequest when it is not allowed."""

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None when it can not be read."""

    def queries_in(self, name: str) -> list[str] | None:
        """The sorted names of the `.gq` files of a folder; None when it can not be read."""


@dataclass(frozen=True)
class Folder:
    """A declaration in a folder. The bytes that were read are kept in `seen`, to send the same bytes to a server."""

    path: Path
    seen: dict[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        return str(self.path)

    def config_text(self, findings: Findings) -> str:
        if not self.path.is_dir():
            findings.error("config_dir_not_found", str(self.path), f"there is no folder '{self.path}'")
            raise Stop
        path = self.path / FILE
        try:
            if path.exists() and not path.is_file():
                # A pipe or a device may have no end.
                raise OSError(errno.EINVAL, "it is not a file")
            content = path.read_bytes()
            text = content.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"
            findings.error("cluster_config_read_error", FILE, f"cannot read '{path}': {reason}")
            raise Stop from None
        self.seen[FILE] = content
        return text

    def storage(self, given: str | None) -> Root:
        if given is None:
            return Root.parse(self.path)
        return Root.parse(given if "://" in given else self.path / given)

    def read(self, name: str) -> bytes | None:
        path = self.path / name
        try:
            # A pipe or a device may have no end.
            content = path.read_bytes() if path.is_file() else None
        except (OSError, ValueError):
            return None
        if content is None:
            return None
        self.seen[name] = content
        return content

    def queries_in(self, name: str) -> list[str] | None:
        try:
            found = sorted(
                path.name for path in (self.path / name).iterdir() if path.suffix == ".gq" and path.is_file()
            )
        except (OSError, ValueError):
            return None
        return [f"{name.rstrip('/')}/{file}" for file in found]


@dataclass(frozen=True)
class Sent:
    """A declaration that was sent to the server of the cluster at `root`; no file of the server is read for it."""

    files: Mapping[str, str] = field(repr=False)
    root: Root
    shown: str = "."

    def config_text(self, findings: Findings) -> str:
        if FILE not in self.files:
            findings.error("cluster_config_read_error", FILE, f"no {FILE} was sent")
            raise Stop
        return self.files[FILE]

    def storage(self, given: str | None) -> Root:
        """The root of the server. A full address in the declaration must equal it; a relative path can not be compared."""
        if given is not None and ("://" in given or given.startswith("/")) and Root.parse(given).uri != self.root.uri:
            raise BadRequest("the declaration names other storage than that of the cluster that this server serves")
        return self.root

    def read(self, name: str) -> bytes | None:
        text = self.files.get(name)
        return None if text is None else text.encode()

    def queries_in(self, name: str) -> list[str] | None:
        prefix = f"{name.rstrip('/')}/"
        return sorted(
            file
            for file in self.files
            if file.startswith(prefix) and file.endswith(".gq") and "/" not in file.removeprefix(prefix)
        )
