"""The diagnostics of a cluster command: errors, with which it fails, and warnings. Codes never change their meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Diagnostic:
    """One finding. `path`: the place in cluster.yaml, a file, or the address of a resource."""

    severity: Severity
    code: str
    path: str
    message: str

    def to_dict(self) -> dict[str, Any]:
        return {"severity": self.severity, "code": self.code, "path": self.path, "message": self.message}

    @property
    def line(self) -> str:
        """The finding as one line of text."""
        word = "ERROR" if self.severity == "error" else "WARN "
        return f"{word} {self.code} {self.path}: {self.message}"


@dataclass
class Findings:
    """The diagnostics of one command, in the order in which they were found."""

    listed: list[Diagnostic] = field(default_factory=list)

    def error(self, code: str, path: str, message: str) -> None:
        """Add an error; the command fails."""
        self.listed.append(Diagnostic("error", code, path, message))

    def warn(self, code: str, path: str, message: str) -> None:
        """Add a warning; the command goes on."""
        self.listed.append(Diagnostic("warning", code, path, message))

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not any(found.severity == "error" for found in self.listed)


class Stop(Exception):
    """A command can not go on; its findings say why."""
