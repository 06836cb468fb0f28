"""Scratch folders: gone with their process, at the latest when the next one is made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.scratch import make_scratch

CHILD = """
import sys
from pathlib import Path
from omnigraph.storage.scratch import make_scratch
made = make_scratch("load", Path(sys.argv[1]))
made.path.joinpath("keys").mkdir()
made.path.joinpath("keys", "0").write_bytes(b"x")
print(made.path, flush=True)
sys.stdin.read()
"""


def a_process(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process with a scratch folder, which lives until it is told otherwise."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    return child, Path(child.stdout.readline().strip())


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(tmp_path: Path) -> None:
    (dead, left), (living, used) = a_process(tmp_path), a_process(tmp_path)
    own = make_scratch("load", tmp_path)
    assert left.exists(), "its process lives"
    dead.send_signal(signal.SIGKILL)
    dead.wait()
    assert (left / "keys" / "0").exists()
    another = make_scratch("spark", tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([own.path, another.path, used])
    living.communicate()
    own.remove()
    another.remove()
    make_scratch("load", tmp_path).remove()
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_scratch_folder_stays(tmp_path: Path) -> None:
    """A graph may have such a name, however old it is; a link leads elsewhere; what another user has is theirs."""
    graph, aim, foreign = tmp_path / "omnigraph-load-mine", tmp_path / "elsewhere", tmp_path / "omnigraph-load-theirs"
    for folder in (graph, aim, foreign):
        folder.mkdir()
        (folder / "data").write_bytes(b"x")
        os.utime(folder, (time.time() - 10**7,) * 2)
    (aim / ".omnigraph-scratch").touch()
    (tmp_path / "omnigraph-load-link").symlink_to(aim)
    if os.getuid() == 0:
        (foreign / ".omnigraph-scratch").touch()
        os.chown(foreign, 12345, 12345)
    make_scratch("load", tmp_path).remove()
    assert all((folder / "data").exists() for folder in (graph, aim, foreign))


def test_only_its_user_can_enter(tmp_path: Path) -> None:
    made = make_scratch("load", tmp_path)
    assert made.path.stat().st_mode & 0o777 == 0o700
    assert made.path.name.startswith("omnigraph-load-")
    made.remove()


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="can not keep temporary files in .*No such file.*set TMPDIR"):
        make_scratch("load", tmp_path / "nowhere")
