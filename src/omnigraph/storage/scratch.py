"""Temporary folders of one process, removed with it.

Each holds a file that its process keeps locked. The kernel releases the lock however the process ends, so the next process
that makes a folder can tell abandoned folders from used ones, and removes them, without relying on process ids.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import StorageError
from omnigraph.storage.file_lock import try_lock, unlock

#: A folder without this file is never taken for scratch, whatever its name: it may be user data.
_OWNER = ".omnigraph-scratch"
_NAME = "omnigraph-"


@dataclass(frozen=True)
class ScratchFolder:
    """A temporary folder of this process, and the descriptor of its lock."""

    path: Path
    lock: int

    def remove(self) -> None:
        """Remove the folder with all its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        unlock(self.lock)


def make_scratch(purpose: str, within: Path | None = None) -> ScratchFolder:
    """A new folder `omnigraph-<purpose>-…` that only this user can enter; folders of dead processes are removed first."""
    parent = within or Path(tempfile.gettempdir())
    _remove_abandoned(parent)
    with in_scratch(parent):
        # Lock it before it gets the name that other processes look for.
        made = Path(tempfile.mkdtemp(prefix=f".{_NAME}{purpose}-", dir=parent))
        lock = try_lock(made / _OWNER)
        assert lock is not None, "nobody else knows this name"
        path = made.rename(made.with_name(made.name.removeprefix(".")))
    return ScratchFolder(path, lock)


@contextmanager
def in_scratch(folder: Path) -> Iterator[None]:
    """Turn OSErrors into StorageErrors that advise another folder for temporary files."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]
        raise StorageError(
            f"can not keep temporary files in {folder}: {reason}; make room there or set TMPDIR to another folder",
            kind="configuration",
            path=str(folder),
        ) from error


def _remove_abandoned(parent: Path) -> None:
    """Remove folders of processes that have ended; folders of other users, or in use, are left alone."""
    for folder in _own_folders(parent):
        # Looking for leftovers must never make a load fail.
        with suppress(OSError):
            lock = try_lock(folder / _OWNER) if (folder / _OWNER).is_file() else None
            if lock is not None:
                ScratchFolder(folder, lock).remove()


def _own_folders(parent: Path) -> Iterator[Path]:
    try:
        entries = list(os.scandir(parent))
    except OSError:
        return
    for entry in entries:
        with suppress(OSError):
            if entry.name.startswith(_NAME):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                    yield Path(entry.path)
